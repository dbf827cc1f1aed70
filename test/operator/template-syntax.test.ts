import { createRequire } from 'node:module';
import fc from 'fast-check';
import jsone from 'json-e';
import { describe, expect, it } from 'vitest';
import type { Json, JsonObject } from '../../src/domain/json.ts';
import { additions, readTemplate } from '../../src/operator/template-syntax.ts';
import { count } from '../support/tier.ts';

const templateFault = (template: Json) => readTemplate(template).fault;

/** As JSON, because an object literal with this key would look like a promise. */
const when = (condition: string, value: Json): JsonObject => ({
  $if: condition,
  ...(JSON.parse(`{"then": ${JSON.stringify(value)}}`) as JsonObject),
});

describe('a template', () => {
  it.each<[Json]>([
    [null],
    [true],
    [1.5],
    ['plain text, $ and { and }'],
    ['$${literal} and ${config.url}'],
    ['${"}"}${{a: "}"}.a}'],
    ['$${${config.a}'],
    [{ '${config.key}': 1, $$if: 'x', a: [{ b: '${c}' }] }],
    [{ $eval: ' a.b["c"][1:][:2][-1] + f(x, [1, 2], {k: 3, "l": !true,}) ** -2 in y || null != z ' }],
    [when('config.deep && steps["a b"].output', { $eval: 'x' })],
    [{ ...when('a', 1), else: '${b}' }],
    [{ $switch: { 'a == 1': 1, $default: { $eval: 'b' } } }],
    [{ $match: { 'a == 1': '${x}', true: 2 } }],
    [{ $let: { x: 1, y: { $eval: 'x' } }, in: { $eval: 'x + y' } }],
    [{ $map: { $eval: 'config.pages' }, 'each(page,i)': { page: '${page}', i: { $eval: 'i' } } }],
    [{ $map: [1, 2], 'each(x)': 1 }],
    [{ $reduce: [1, 2], initial: 0, 'each(sum, x)': { $eval: 'sum + x' } }],
    [{ $find: [1, 2], 'each(x)': 'x == 2' }],
    [{ $sort: { $eval: 'xs' }, 'by(x)': 'x.name' }],
    [{ $sort: [2, 1] }],
    [{ $fromNow: '1 day', from: '${now}' }],
    [{ $merge: [{ $eval: 'config' }, { a: 1 }] }],
    [{ $json: { $flattenDeep: [[1], [{ $reverse: [2, 3] }]] } }],
  ])('%j is right', (template) => {
    expect(templateFault(template)).toBeNull();
  });

  it.each<[Json, string, string]>([
    ['${', '', 'a value is expected at its end'],
    ['${}', '', 'a value is expected at character 3'],
    ['${a', '', '} or an operator is expected at its end'],
    ['${a b}', '', '} or an operator is expected at character 5'],
    [{ a: [{ b: '${1 +}' }] }, '.a[0].b', 'a value is expected at character 6'],
    [{ 'a b': { $eval: '' } }, '["a b"].$eval', 'a value is expected at its end'],
    [{ $eval: 'a || (b +)' }, '.$eval', 'a value is expected at character 10'],
    [{ $eval: 'a.1' }, '.$eval', 'a name is expected at character 3'],
    [{ $eval: 'a = b' }, '.$eval', 'what stands at character 3 belongs to no expression'],
    [{ $eval: '"a' }, '.$eval', 'what stands at character 1 belongs to no expression'],
    [{ $eval: 'f(1,)' }, '.$eval', 'a value is expected at character 5'],
    [{ $eval: `${'('.repeat(101)}1${')'.repeat(101)}` }, '.$eval', 'it is nested deeper than 100 levels'],
    [{ $eval: 1 }, '.$eval', 'it must be an expression in a string'],
    [when('a', '${'), '.then', 'a value is expected at its end'],
    [{ $if: 'a', $then: 1 }, '', '$if has no "$then"'],
    [{ $if: 'a', $eval: 'b' }, '', 'it has 2 operators ($if, $eval); only one is possible'],
    [{ x: { $evil: 'a' } }, '.x.$evil', 'there is no operator $evil; a key that starts with $ is written $$'],
    [{ '${': 1 }, '["${"]', 'a value is expected at its end'],
    [{ $switch: { 'a ==': 1 } }, '.$switch["a =="]', 'a value is expected at its end'],
    [{ $match: { $default: 1 } }, '.$match.$default', 'what stands at character 1 belongs to no expression'],
    [{ $match: [] }, '.$match', 'it must be an object of conditions'],
    [{ $let: { x: 1 } }, '', '$let needs one in'],
    [{ $let: [], in: 1 }, '.$let', 'it must be an object of variables'],
    [{ $map: [], 'each(1)': 1 }, '', '$map has no "each(1)"'],
    [{ $map: [] }, '', '$map needs one each(x)'],
    [{ $map: [], 'each(x)': 1, 'each(y)': 1 }, '', '$map needs one each(x)'],
    [{ $reduce: [], 'each(a,b)': 1 }, '', '$reduce needs one initial'],
    [{ $find: [], 'each(x)': { a: 1 } }, '["each(x)"]', 'it must be an expression in a string'],
  ])('%j is wrong at %s', (template, path, message) => {
    expect(templateFault(template)).toEqual({ path, message });
  });
});

describe('of what a template is rendered with, it', () => {
  const mentioned = (template: Json) =>
    readTemplate(template).mentions.map(
      ({ path, name, member }) => `${path} ${name}${member === null ? '' : `.${member}`}`,
    );

  it.each<[Json, string[]]>([
    ['${a} $${b} ${c.d.e} ${f["g"]}', [' a', ' c.d', ' f']],
    [
      { '${a}': [{ b: '${-c(d, [e], {f: g})[h:i].j}' }] },
      [
        '["${a}"] a',
        '["${a}"][0].b c',
        '["${a}"][0].b d',
        '["${a}"][0].b e',
        '["${a}"][0].b g',
        '["${a}"][0].b h',
        '["${a}"][0].b i',
      ],
    ],
    [when('a', { $eval: 'b.c' }), ['.$if a', '.then.$eval b.c']],
    [{ $let: { x: '${y}' }, in: '${x.a} ${y}' }, ['.$let.x y', '.in y']],
    [{ x: { $let: { x: 1 }, in: 1 }, y: '${x}' }, ['.y x']],
    [{ $let: { '${k}': 1 }, in: '${x}' }, ['.$let["${k}"] k']],
    [{ $let: { $eval: 'config' }, in: '${x}' }, ['.$let.$eval config']],
    [{ $map: '${xs}', 'each(x,i)': '${x.steps} ${i} ${y}' }, ['.$map xs', '["each(x,i)"] y']],
    [{ $map: [], 'each(steps)': '${steps.c}' }, []],
    [{ $reduce: [], initial: 0, 'each(s, x)': { $eval: 's + x + y' } }, ['["each(s, x)"].$eval y']],
    [{ $find: [], 'each(x)': 'x == y' }, ['["each(x)"] y']],
    [{ $sort: { $eval: 'xs' }, 'by(x)': 'x.a + y' }, ['.$sort.$eval xs', '["by(x)"] y']],
    [{ $switch: { 'a == 1': '${b}' } }, ['.$switch["a == 1"] a', '.$switch["a == 1"] b']],
  ])('takes from %j what it names, and not its own variables', (template, names) => {
    expect(mentioned(template)).toEqual(names);
  });

  it('may ask whether there is what it names', () => {
    expect(mentioned(when('defined("x") && "c" in steps', '${x} ${steps.c} ${y}'))).toEqual([
      '.$if defined',
      '.$if steps',
      '.then y',
    ]);
  });

  it('gets what json-e adds', () => {
    const builtins = internals('./builtins.js') as (context: object) => object;
    expect([...additions].sort()).toEqual([...Object.keys(builtins({})), 'now'].sort());
  });
});

/** json-e's own parser as the judge. It leaves holes in its tree where an operand is missing. */
const internals = createRequire(createRequire(import.meta.url).resolve('json-e'));
const { Parser } = internals('./parser.js');
const Tokenizer = internals('./tokenizer.js');
const tokenizer = new Tokenizer({
  ignore: '\\s+',
  patterns: {
    number: '[0-9]+(?:\\.[0-9]+)?',
    identifier: '[a-zA-Z_][a-zA-Z_0-9]*',
    string: '\'[^\']*\'|"[^"]*"',
    true: 'true(?![a-zA-Z_0-9])',
    false: 'false(?![a-zA-Z_0-9])',
    in: 'in(?![a-zA-Z_0-9])',
    null: 'null(?![a-zA-Z_0-9])',
  },
  tokens:
    '** + - * / [ ] . ( ) { } : , >= <= < > == != ! && || true false in null number identifier string'.split(
      ' ',
    ),
});

function parses(expression: string): boolean {
  try {
    const parser = new Parser(tokenizer, expression);
    const tree: unknown = parser.parse();
    return parser.current_token === null && isWhole(tree);
  } catch {
    return false;
  }
}

function isWhole(node: unknown): boolean {
  if (Array.isArray(node)) return node.every(isWhole);
  if (typeof node !== 'object' || node === null) return false;
  const parts = node as Record<string, unknown>;
  switch (parts.constructorName) {
    case 'BinOp':
      return isWhole(parts.left) && isWhole(parts.right);
    case 'UnaryOp':
      return isWhole(parts.expr);
    case 'FunctionCall':
      return isWhole(parts.name) && isWhole(parts.args);
    case 'List':
      return isWhole(parts.list);
    case 'Object':
      return isWhole(Object.values(parts.obj as object));
    case 'ValueAccess':
      // a[1 2] is a slip of the parser, which ignores the 2.
      if (!parts.isInterval && parts.right !== null) return false;
      return [parts.arr, parts.left ?? parts.arr, parts.right ?? parts.arr].every(isWhole);
    default:
      return true;
  }
}

const words = `a b1 _c 1 2.5 "s" 't' true null in inside = $ & 1. "`.split(' ');
const symbols = '( ) [ ] { } : , . + - ! * ** / < <= == != && ||'.split(' ');
const tokens = fc.constantFrom(...words, ...symbols, ' ');
/** Mostly right, so that what is right is met often enough. */
const { expression } = fc.letrec<{ expression: string }>((tie) => ({
  expression: fc.oneof(
    { depthSize: 'small', withCrossShrink: true },
    fc.constantFrom('a', '1', '"s"', 'null', 'true', '[]', '{}', 'f()'),
    fc
      .tuple(
        tie('expression'),
        fc.constantFrom('+', '-', '**', ' in ', '==', '&&', '||', '.', ',', ' '),
        tie('expression'),
      )
      .map((parts) => parts.join('')),
    tie('expression').map((e) => `(${e})`),
    fc.tuple(fc.constantFrom('-', '!', '+', ''), tie('expression')).map((parts) => parts.join('')),
    fc.tuple(tie('expression'), tie('expression')).map(([a, b]) => `${a}[${b}]`),
    fc.tuple(tie('expression'), tie('expression')).map(([a, b]) => `${a}[${b}:]`),
    fc.tuple(tie('expression'), tie('expression')).map(([a, b]) => `${a}(${b}, ${a})`),
    tie('expression').map((e) => `{k: ${e}, "l": ${e},}`),
    tie('expression').map((e) => `[${e}, ${e}]`),
  ),
}));
const numRuns = count({ test: 3000, soak: 200_000 });

describe('an expression', () => {
  it('is right exactly when json-e can parse it', () => {
    const texts = fc.oneof(
      expression,
      fc.array(tokens, { maxLength: 12 }).map((parts) => parts.join('')),
    );
    fc.assert(
      fc.property(texts, (text) => {
        expect({ text, right: templateFault({ $eval: text }) === null }).toEqual({
          text,
          right: parses(text),
        });
      }),
      { numRuns },
    );
  });

  it('ends where json-e ends it', () => {
    fc.assert(
      fc.property(
        fc.array(fc.constantFrom('$', '${', '}', 'a', '"', '1', '$${'), { maxLength: 10 }),
        (parts) => {
          const text = parts.join('');
          // aa and a1 are names that nothing has a value for.
          fc.pre(!/\w\w/.test(text));
          let syntaxError = false;
          try {
            jsone(text, { a: 'a' });
          } catch (error) {
            // A missing operand shows as an error of JavaScript.
            syntaxError =
              error instanceof Error && (error.name === 'SyntaxError' || error instanceof TypeError);
          }
          expect({ text, wrong: templateFault(text) !== null }).toEqual({ text, wrong: syntaxError });
        },
      ),
      { numRuns },
    );
  });
});
