import { setTimeout as sleep } from 'node:timers/promises';
import type { Agent } from './worker';

/** Stands for a call of a model: it "summarizes" by keeping the first sentence. */
export function createSummarizer(): { summarize: Agent; repair(): void } {
  let repaired = false;
  const summarize: Agent = async ({ input, tell, signal }) => {
    const { text = '', format = 'text' } = input as { text?: string; format?: string };
    if (format === 'video') await sleep(3_600_000, null, { signal });
    if (format === 'pdf' && !repaired)
      return {
        status: 'FAILED',
        error: {
          code: 'CONVERTER_BROKEN',
          kind: 'PERMANENT',
          message: 'The converter of PDF files is broken.',
        },
      };
    const [summary = ''] = text.split('. ');
    await tell('thought', { content: `The text has ${text.length} characters.` });
    await tell('final_answer', { content: summary, done: true, is_fallback: false });
    return {
      status: 'COMPLETED',
      output: { summary },
      usage: [{ model: 'gpt-4.1-mini', inputTokens: 900, outputTokens: 12, cost: '0.0003792' }],
    };
  };
  return {
    summarize,
    repair: () => {
      repaired = true;
    },
  };
}
