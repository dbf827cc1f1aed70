import type { Json } from '../domain/json.ts';
import type { JobStepInput, SaveAgentInput, SaveJobInput, SaveRouteInput } from '../operator/types.ts';
import { type AssetPair, assetsOf, chatPairAssets } from './assets.ts';
import { handlerNames } from './handlers.ts';
import { auditSchema, chatSchema, operationSchema } from './message-schema.ts';
import { chatTopic, type Operation, operations } from './operations.ts';
import { auditConfig, chatAssetConfig, eventConfig } from './route-configs.ts';

// What is kept here happened already, so it takes no slot from work that somebody waits for.
const queue = 'postprocess';

const inlineAgent = (name: string, handler: string, description: string): SaveAgentInput => ({
  name,
  description,
  dispatch: { inline: { handler } },
  queue,
  timeoutSeconds: 30,
  retryPolicy: { maxAttempts: 5, backoff: 'EXPONENTIAL', initialDelaySeconds: 1, maxDelaySeconds: 60 },
});

export const agents: readonly SaveAgentInput[] = [
  inlineAgent('knowledge_chat_audit', handlerNames.chatAudit, 'Writes the audit trail of chats.'),
  inlineAgent(
    'knowledge_chat_pair_record',
    handlerNames.chatPairRecord,
    'Extracts a prompt and its response from a chat.',
  ),
  inlineAgent(
    'knowledge_chat_pair_dataset',
    handlerNames.chatPairDataset,
    'Adds pairs to the dataset of chats.',
  ),
  inlineAgent(
    'knowledge_event_record',
    handlerNames.eventRecord,
    'Extracts the record of an operation from its message.',
  ),
  inlineAgent(
    'knowledge_event_dataset',
    handlerNames.eventDataset,
    'Adds records to the datasets of operations.',
  ),
];

/** Extraction first, persistence second: when the database refuses, only the second is repeated. */
const recordThenDataset = (
  assets: AssetPair,
  agentPrefix: string,
  readsAssetKeys: string[] = [],
): JobStepInput[] => [
  { name: 'record', agent: `${agentPrefix}_record`, assetKey: assets.record, readsAssetKeys },
  {
    name: 'dataset',
    agent: `${agentPrefix}_dataset`,
    dependsOn: ['record'],
    input: { $eval: 'steps.record.output' },
    assetKey: assets.dataset,
    readsAssetKeys: [assets.record],
  },
];

interface Definition {
  job: SaveJobInput;
  route: SaveRouteInput;
}

/** A job, and the route of the same name that launches it. */
const define = (
  name: string,
  { topic, config, ...job }: { topic: string; config: Json } & Omit<SaveJobInput, 'name'>,
): Definition => ({ job: { name, ...job }, route: { name, topic, job: name, config } });

const operationDefinition = ({ type, topic, description, after }: Operation): Definition =>
  define(`knowledge_${type}`, {
    description,
    topic,
    config: eventConfig(type),
    configSchema: operationSchema(type),
    steps: recordThenDataset(
      assetsOf(type),
      'knowledge_event',
      after === undefined ? [] : [assetsOf(after).dataset],
    ),
  });

export const definitions: readonly Definition[] = [
  define('knowledge_chat_persist', {
    description: 'Keeps an audit trail of chats.',
    topic: chatTopic,
    config: auditConfig(false),
    configSchema: auditSchema,
    steps: [{ name: 'persist', agent: 'knowledge_chat_audit' }],
  }),
  define('knowledge_chat_pair_materialize', {
    description: 'Makes a dataset of prompts and responses from chats.',
    topic: chatTopic,
    config: chatAssetConfig(),
    configSchema: chatSchema,
    steps: recordThenDataset(chatPairAssets, 'knowledge_chat_pair'),
  }),
  ...operations.map(operationDefinition),
];
