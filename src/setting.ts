/** One environment variable. */
export interface Setting<T> {
  /** As text, as if it were set; null is absent. */
  readonly default: string | null;
  /** What it may be, to follow "must be". */
  readonly values: string;
  readonly meaning: string;
  /** Undefined when the text is none of the values. */
  readonly parse: (text: string) => T | undefined;
  /** The text is not repeated in a fault. */
  readonly secret?: true;
}

export interface SettingWithDefault<T> extends Setting<T> {
  readonly default: string;
}

export const integer = (
  min: number,
  max: number,
  byDefault: number,
  meaning: string,
): SettingWithDefault<number> => ({
  default: String(byDefault),
  values: `an integer from ${min} to ${max}`,
  meaning,
  parse: (text) =>
    /^\d{1,10}$/.test(text) && Number(text) >= min && Number(text) <= max ? Number(text) : undefined,
});

export const choice = <T extends string>(
  choices: readonly T[],
  byDefault: T,
  meaning: string,
): SettingWithDefault<T> => ({
  default: byDefault,
  values: choices.length === 1 ? `${choices[0]}` : `one of ${choices.join(', ')}`,
  meaning,
  parse: (text) => choices.find((known) => known === text),
});

export const path = (meaning: string): Setting<string> => ({
  default: null,
  values: 'a path',
  meaning,
  parse: (text) => (text.includes('\0') ? undefined : text),
});
