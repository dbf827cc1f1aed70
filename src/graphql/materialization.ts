import { toPublicId } from '../domain/ids.ts';
import { MaterializationConnection, pageArgs } from './connections.ts';
import { AssetRef, AttemptRef, idOf, MaterializationRef, Node, TaskRef } from './refs.ts';
import { ifPayload } from './scopes.ts';

MaterializationRef.implement({
  description: 'One production of an asset.',
  interfaces: [Node],
  fields: (t) => ({
    id: t.id(idOf('mat')),
    asset: t.field({
      type: AssetRef,
      description: 'What was produced.',
      resolve: async ({ assetId }, _, { loaders }) => {
        const asset = await loaders.asset(assetId);
        if (!asset) throw new Error('The asset of a materialization is gone.');
        return asset;
      },
    }),
    partition: t.exposeString('partition', { nullable: true, description: 'Which part of the asset.' }),
    runId: t.id({
      description: 'The run that produced it.',
      resolve: ({ runId }) => toPublicId('run', runId),
    }),
    taskId: t.id({
      description: 'The task that produced it.',
      resolve: ({ taskId }) => toPublicId('task', taskId),
    }),
    attemptId: t.id({
      description: 'The attempt that produced it.',
      resolve: ({ attemptId }) => toPublicId('att', attemptId),
    }),
    at: t.expose('at', { type: 'DateTime', description: 'When its result was stored.' }),
    metadata: t.field({
      type: 'JSON',
      nullable: true,
      description: 'What its worker says about it. Needs PAYLOAD_READ, else null.',
      resolve: async (made, _, context) =>
        (await ifPayload(context, () => context.loaders.materializationMetadata(made.id)))?.metadata,
    }),
    task: t.field({
      type: TaskRef,
      nullable: true,
      description: 'That task.',
      resolve: ({ taskId }, _, { loaders }) => loaders.task(taskId),
    }),
    attempt: t.field({
      type: AttemptRef,
      nullable: true,
      description: 'That attempt.',
      resolve: ({ attemptId }, _, { loaders }) => loaders.attempt(attemptId),
    }),
    inputs: t.field({
      type: MaterializationConnection,
      nullable: true,
      description:
        'What it was made from: of each asset that its step reads the latest production, of the same run or else of the same correlation id. Where there was none, the first that came later.',
      args: pageArgs,
      resolve: (made, page, { loaders }) => loaders.materializationInputs(made.id, page),
    }),
  }),
});
