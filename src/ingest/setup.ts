import { jetstreamManager, RetentionPolicy, StorageType, type StreamConfig } from '@nats-io/jetstream';
import { millis, nanos } from '@nats-io/transport-node';
import type { NatsConfig } from '../nats-config.ts';
import { found } from './attach.ts';
import { connectTo } from './connection.ts';

/** How a stream is made: kept on disk, for three days, whoever has read it. */
const wanted = (name: string) =>
  ({
    name,
    subjects: [`${name.toLowerCase()}.>`],
    storage: StorageType.File,
    retention: RetentionPolicy.Limits,
    max_age: nanos(72 * 3_600_000),
  }) satisfies Partial<StreamConfig> & { name: string };

export interface SetUp {
  stream: string;
  created: boolean;
  subjects: string[];
  /** Of a stream that was there: how it is other than it would have been made. */
  differences: string[];
}

/** Creates the streams that do not exist; those that do are compared, and never changed. */
export async function setUpStreams(config: NatsConfig): Promise<SetUp[]> {
  const nc = await connectTo(config, 'runplane nats setup');
  try {
    const jsm = await jetstreamManager(nc);
    const results: SetUp[] = [];
    for (const stream of config.streams) {
      const existing = await found(jsm.streams.info(stream));
      const { config: made } = existing ?? (await jsm.streams.add(wanted(stream)));
      results.push({
        stream,
        created: !existing,
        subjects: subjectsOf(made),
        differences: existing ? differencesOf(made) : [],
      });
    }
    return results;
  } finally {
    await nc.close();
  }
}

/** A stream that copies others has none of its own. */
const subjectsOf = ({ subjects }: Partial<Pick<StreamConfig, 'subjects'>>): string[] => subjects ?? [];

/** Each as a sentence. */
function differencesOf(
  config: Pick<StreamConfig, 'name' | 'subjects' | 'storage' | 'retention' | 'max_age'>,
) {
  const age = (ns: number): string => (ns === 0 ? 'for ever' : `${millis(ns) / 3_600_000} h`);
  const listed = (subjects: string[]): string => (subjects.length > 0 ? subjects.join(', ') : 'of no one');
  const { subjects, storage, retention, max_age } = wanted(config.name);
  const pairs: [string, string, string][] = [
    ['takes the subjects', listed(subjectsOf(config)), listed(subjects)],
    ['is stored in', config.storage, storage],
    ['has the retention', config.retention, retention],
    ['keeps messages', age(config.max_age), age(max_age)],
  ];
  return pairs
    .filter(([, is, would]) => is !== would)
    .map(([what, is, would]) => `It ${what} ${is}; setup would have made it ${would}.`);
}
