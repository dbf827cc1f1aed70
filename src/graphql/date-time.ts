const form =
  /^(\d{4})-(\d\d)-(\d\d)[Tt]([01]\d|2[0-3]):([0-5]\d):([0-5]\d)(\.\d{1,9})?([Zz]|[+-]([01]\d|2[0-3]):[0-5]\d)$/;

/** The time of an RFC 3339 text, to the millisecond; null when it is none, as on the 30th of February. */
export function dateTimeOf(text: string): Date | null {
  const match = form.exec(text);
  if (!match) return null;
  const [, year = '', month = '', day = ''] = match;
  // Date would count days that a month does not have into the next one.
  const midnight = new Date(Date.UTC(2000, Number(month) - 1, Number(day)));
  midnight.setUTCFullYear(Number(year), Number(month) - 1, Number(day));
  if (midnight.toISOString().slice(0, 10) !== `${year}-${month}-${day}`) return null;
  const date = new Date(text.toUpperCase());
  return Number.isNaN(date.getTime()) ? null : date;
}
