import { inNfc } from '../domain/text.ts';
import type { AssetEdge } from '../read/assets.ts';
import { builder } from './builder.ts';
import { AssetConnection, MaterializationConnection, pageArgs } from './connections.ts';
import { LineageDirectionEnum } from './enums.ts';
import { AssetRef, idOf, MaterializationRef, Node } from './refs.ts';

const found = <T>(asset: T | null): T => {
  if (asset === null) throw new Error('An asset is gone.');
  return asset;
};

const AssetEdgeLink = builder.objectRef<AssetEdge>('AssetEdgeLink').implement({
  description: 'One asset is made from another.',
  fields: (t) => ({
    upstream: t.field({
      type: AssetRef,
      description: 'What is read.',
      resolve: async (edge, _, { loaders }) => found(await loaders.asset(edge.upstream)),
    }),
    downstream: t.field({
      type: AssetRef,
      description: 'What is made from it.',
      resolve: async (edge, _, { loaders }) => found(await loaders.asset(edge.downstream)),
    }),
    depth: t.exposeInt('depth', { description: 'Steps from the asset that was asked about, from 1.' }),
  }),
});

AssetRef.implement({
  description:
    'What a step produces. Its lineage follows from the steps of the jobs, in their current versions.',
  interfaces: [Node],
  fields: (t) => ({
    id: t.id(idOf('asset')),
    key: t.exposeString('key', { description: 'Unique; never changes.' }),
    description: t.exposeString('description', { nullable: true, description: 'What it is.' }),
    upstream: t.field({
      type: [AssetRef],
      description: 'The assets that the steps read which make it, by key.',
      resolve: async (asset, _, { loaders }) => (await loaders.assetUpstream(asset.id)) ?? [],
    }),
    downstream: t.field({
      type: [AssetRef],
      description: 'The assets that steps make which read it, by key.',
      resolve: async (asset, _, { loaders }) => (await loaders.assetDownstream(asset.id)) ?? [],
    }),
    lineage: t.field({
      type: [AssetEdgeLink],
      nullable: true,
      description: 'All assets up or down from it, as edges, nearest first.',
      args: {
        direction: t.arg({ type: LineageDirectionEnum, required: true, description: 'Which way.' }),
        depth: t.arg.int({ defaultValue: 10, description: 'How many steps at most, 1 to 100.' }),
      },
      resolve: (asset, { direction, depth }, { services }) =>
        services.read.assets.lineage(asset.id, direction, depth ?? 10),
    }),
    latestMaterialization: t.field({
      type: MaterializationRef,
      nullable: true,
      description: 'Its newest production.',
      resolve: (asset, _, { loaders }) => loaders.assetLatest(asset.id),
    }),
    materializations: t.field({
      type: MaterializationConnection,
      nullable: true,
      description: 'Its productions, newest first.',
      args: { ...pageArgs, partition: t.arg.string({ description: 'Only those of this partition.' }) },
      resolve: (asset, { partition, ...page }, { loaders }) =>
        loaders.assetMaterializations(asset.id, inNfc(partition) ?? null, page),
    }),
  }),
});

builder.queryFields((t) => ({
  asset: t.field({
    type: AssetRef,
    nullable: true,
    description: 'An asset by its key; null when there is none. Needs READ.',
    args: { key: t.arg.string({ required: true, description: 'Key of the asset.' }) },
    resolve: (_, { key }, context) => context.services.read.assets.byKey(inNfc(key)),
  }),
  assets: t.field({
    type: AssetConnection,
    nullable: true,
    description: 'All assets, oldest first. Needs READ.',
    args: pageArgs,
    resolve: (_, page, context) => context.services.read.assets.list(page),
  }),
}));
