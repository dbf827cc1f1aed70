import { isJsonObject, type Json, type JsonObject } from '../domain/json.ts';
import { pathStep } from '../domain/json-path.ts';
import { checkExpression, checkInterpolations, type Mentions, SyntaxFault } from './expression-syntax.ts';

type Part = 'template' | 'expression' | 'conditions' | 'variables' | 'value';

interface Operator {
  /** What stands under the operator itself. */
  takes: Part;
  /** Keys that may stand beside it. */
  beside?: readonly { key: RegExp; name: string; takes: Part; required?: true }[];
}

const identifier = '[a-zA-Z_][a-zA-Z0-9_]*';
const plainName = new RegExp(`^${identifier}$`);
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

/** What json-e adds to what a template is rendered with. */
export const additions: ReadonlySet<string> = new Set(
  'now abs ceil defined floor fromNow join len lowercase lstrip max min number range rstrip split sqrt str strip typeof uppercase'.split(
    ' ',
  ),
);

/** A name that a template takes from what it is rendered with, and does not ask for before. */
export interface Mention {
  path: string;
  name: string;
  /** What stands behind its point. */
  member: string | null;
}

export interface TemplateReading {
  /** Where the template is wrong and why, whatever it will be rendered with; null when its syntax is right. */
  fault: { path: string; message: string } | null;
  mentions: Mention[];
}

export function readTemplate(template: Json): TemplateReading {
  const path: string[] = [];
  const mentions: Mention[] = [];
  const texts = new Set<string>();
  /** The template's own variables; null: only rendering tells them. */
  let variables: ReadonlySet<string> | null = new Set();

  const read = (check: (text: string, found: Mentions) => void, text: string): void => {
    const found: Mentions = { names: [], texts: [] };
    check(text, found);
    for (const asked of found.texts) texts.add(asked);
    const known = variables;
    if (known === null) return;
    for (const mention of found.names)
      if (!known.has(mention.name)) mentions.push({ ...mention, path: path.join('') });
  };

  const knowing = (names: readonly string[] | null, check: () => void): void => {
    const outside = variables;
    variables = outside && names && new Set([...outside, ...names]);
    check();
    variables = outside;
  };

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
        return read(
          checkExpression,
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
    if (typeof value === 'string') return read(checkInterpolations, value);
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
        if (!key.startsWith('$$')) read(checkInterpolations, key);
        checkTemplate(value);
      });
    }
  };

  const checkOperator = (name: string, { takes, beside = [] }: Operator, object: JsonObject): void => {
    for (const [key, value] of Object.entries(object)) {
      const part = key === name ? takes : beside.find((other) => other.key.test(key))?.takes;
      if (part === undefined) fault(`${name} has no ${JSON.stringify(key)}`);
      else
        within(pathStep(key), () =>
          knowing(key === name ? [] : variablesOf(name, key, object), () => check(part, value)),
        );
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
        if (!ofSwitch || condition !== '$default') read(checkExpression, condition);
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
    const guarded = ({ name, member }: Mention): boolean =>
      texts.has(name) || (member !== null && texts.has(member));
    return { fault: null, mentions: mentions.filter((mention) => !guarded(mention)) };
  } catch (error) {
    if (!(error instanceof SyntaxFault)) throw error;
    return { fault: { path: path.join(''), message: error.message }, mentions: [] };
  }
}

/** The variables that an operator gives to what stands under one of its keys; null when only rendering tells them. */
function variablesOf(operator: string, key: string, object: JsonObject): readonly string[] | null {
  if (operator !== '$let') return key.includes('(') ? (key.match(/\w+/g) ?? []).slice(1) : [];
  const given = object[operator];
  const names = isJsonObject(given) ? Object.keys(given) : [];
  return names.every((name) => plainName.test(name)) ? names : null;
}

function fault(message: string): never {
  throw new SyntaxFault(message);
}
