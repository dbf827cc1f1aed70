import { type DocumentNode, Kind } from 'graphql';

/** Whether all that the operations of a document ask for are these fields; in fragments they are not looked for. */
export const hasOnlyRootFields = ({ definitions }: DocumentNode, names: ReadonlySet<string>): boolean =>
  definitions.every(
    (definition) =>
      definition.kind === Kind.FRAGMENT_DEFINITION ||
      (definition.kind === Kind.OPERATION_DEFINITION &&
        definition.selectionSet.selections.every(
          (field) => field.kind === Kind.FIELD && names.has(field.name.value),
        )),
  );
