/** What yoga answers with; a stream is ours. */
const answerTypes = ['application/graphql-response+json', 'application/json', 'multipart/mixed'];

/** Whether an Accept header takes what is no event stream, in the one charset that there is. Without one, anything is right. */
export const acceptsAnswer = (accept: string): boolean =>
  accept === '' ||
  accept
    .replace(/\s/g, '')
    .toLowerCase()
    .split(',')
    .some((range) => {
      const [type = '', ...parameters] = range.split(';');
      const charset = parameters.find((each) => each.includes('charset=')) ?? 'charset=utf-8';
      return charset === 'charset=utf-8' && answerTypes.some((answer) => matches(type, answer));
    });

function matches(range: string, type: string): boolean {
  return range === '*/*' || range === type || (range.endsWith('/*') && type.startsWith(range.slice(0, -1)));
}
