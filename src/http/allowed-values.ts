import { type GraphQLSchema, isEnumType } from 'graphql';

const listed = 12;

/** What is told of a wrong name of an enum, with those that there are. */
export const withAllowedValues = (message: string, schema: GraphQLSchema): string =>
  message.replace(
    /(?<= does not exist in "(\w+)" enum|Enum "(\w+)" cannot represent [\w -]*value)\./,
    (end, ofName: string | undefined, ofOther: string | undefined) => {
      const type = schema.getType(ofName ?? ofOther ?? '');
      if (!isEnumType(type)) return end;
      const names = type.getValues().map(({ name }) => name);
      const more = names.length > listed ? ` and ${names.length - listed} more` : '';
      return `; it is one of ${names.slice(0, listed).join(', ')}${more}.`;
    },
  );
