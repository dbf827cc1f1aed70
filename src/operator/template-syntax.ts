import { isJsonObject, type Json, type JsonObject } from '../domain/json.ts';
import { pathStep } from '../domain/json-path.ts';
import { checkExpression, checkInterpolations, SyntaxFault } from './expression-syntax.ts';

type Part = 'template' | 'expression' | 'conditions' | 'variables' | 'value';

interface Operator {
  /** What stands under the operator itself. */
  takes: Part;
  /** Keys that may stand beside it. */
  beside?: readonly { key: RegExp; name: string; takes: Part; required?: true }[];
}

const identifier = '[a-zA-Z_][a-zA-Z0-9_]*';
const each = new RegExp(`^each\\(${identifier}(,\\s*${identifier})?\\)$`);
const eachOfReduce = new RegExp(`^each\\(${identifier},\\s*${identifier}(,\\s*${identifier})?\\)$`);
const by = new RegExp(`^by\\(${identifier}\\)$`);

/** The operators of json-e. */
const operators: Readonly<Record<string, Operator>> = {
  $eval: { takes: 'expression' },
  $if: {
    takes: 'expression',
    beside: [
      { key: /^then$/, name: 'then', takes: 'template' },
      { key: /^else$/, name: 'else', takes: 'template' },
    ],
  },
  $switch: { takes: 'conditions' },
  $match: { takes: 'conditions' },
  $let: { takes: 'variables', beside: [{ key: /^in$/, name: 'in', takes: 'template', required: true }] },
  $map: { takes: 'template', beside: [{ key: each, name: 'each(x)', takes: 'template', required: true }] },
  $reduce: {
    takes: 'template',
    beside: [
      { key: /^initial$/, name: 'initial', takes: 'value', required: true },
      { key: eachOfReduce, name: 'each(a, x)', takes: 'template', required: true },
    ],
  },
  $find: { takes: 'template', beside: [{ key: each, name: 'each(x)', takes: 'expression', required: true }] },
  $sort: { takes: 'template', beside: [{ key: by, name: 'by(x)', takes: 'expression' }] },
  $fromNow: { takes: 'template', beside: [{ key: /^from$/, name: 'from', takes: 'template' }] },
  $json: { takes: 'template' },
  $merge: { takes: 'template' },
  $mergeDeep: { takes: 'template' },
  $flatten: { takes: 'template' },
  $flattenDeep: { takes: 'template' },
  $reverse: { takes: 'template' },
};

/** Where a template is wrong and why, whatever it will be rendered with; null when its syntax is right. */
export function templateFault(template: Json): { path: string; message: string } | null {
  const path: string[] = [];
  const within = (key: string, check: () => void): void => {
    path.push(key);
    check();
    path.pop();
  };

  const check = (part: Part, value: Json): void => {
    switch (part) {
      case 'template':
        return checkTemplate(value);
      case 'expression':
        return checkExpression(
          typeof value === 'string' ? value : fault('it must be an expression in a string'),
        );
      case 'conditions':
        return checkConditions(value);
      case 'variables':
        return checkVariables(value);
      case 'value':
    }
  };

  const checkTemplate = (value: Json): void => {
    if (typeof value === 'string') return checkInterpolations(value);
    if (Array.isArray(value)) {
      for (const [i, entry] of value.entries()) within(`[${i}]`, () => checkTemplate(entry));
    } else if (isJsonObject(value)) {
      const used = Object.keys(value).filter((key) => Object.hasOwn(operators, key));
      if (used.length > 1)
        fault(`it has ${used.length} operators (${used.join(', ')}); only one is possible`);
      const [name] = used;
      const operator = name === undefined ? undefined : operators[name];
      if (name !== undefined && operator) checkOperator(name, operator, value);
      else checkObject(value);
    }
  };

  const checkObject = (object: JsonObject): void => {
    for (const [key, value] of Object.entries(object)) {
      within(pathStep(key), () => {
        if (/^\$[a-zA-Z][a-zA-Z0-9]*$/.test(key))
          fault(`there is no operator ${key}; a key that starts with $ is written $$`);
        if (!key.startsWith('$$')) checkInterpolations(key);
        checkTemplate(value);
      });
    }
  };

  const checkOperator = (name: string, { takes, beside = [] }: Operator, object: JsonObject): void => {
    for (const [key, value] of Object.entries(object)) {
      const part = key === name ? takes : beside.find((other) => other.key.test(key))?.takes;
      if (part === undefined) fault(`${name} has no ${JSON.stringify(key)}`);
      else within(pathStep(key), () => check(part, value));
    }
    for (const other of beside) {
      const given = Object.keys(object).filter((key) => other.key.test(key)).length;
      if (given > 1 || (other.required && given === 0)) fault(`${name} needs one ${other.name}`);
    }
  };

  const checkConditions = (value: Json): void => {
    if (!isJsonObject(value)) return fault('it must be an object of conditions');
    const ofSwitch = path.at(-1) === '.$switch';
    for (const [condition, then] of Object.entries(value)) {
      within(pathStep(condition), () => {
        if (!ofSwitch || condition !== '$default') checkExpression(condition);
        checkTemplate(then);
      });
    }
  };

  const checkVariables = (value: Json): void => {
    if (!isJsonObject(value)) return fault('it must be an object of variables');
    checkTemplate(value);
  };

  try {
    checkTemplate(template);
    return null;
  } catch (error) {
    if (!(error instanceof SyntaxFault)) throw error;
    return { path: path.join(''), message: error.message };
  }
}

function fault(message: string): never {
  throw new SyntaxFault(message);
}
