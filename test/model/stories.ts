import type { Step, Story } from './commands.ts';
import type { FormName, JobName } from './kinds.ts';

/** How each cell of the tables comes up: a way into the state, then the event. */
const claim: Step = { do: 'claim', limit: 4 };
const claimOne: Step = { do: 'claim', limit: 1 };
const pass = (seconds: number): Step => ({ do: 'pass', seconds });
const report = (form: FormName, attempt = 0): Step => ({ do: 'report', attempt, form });
const sweep = (attempt = 0): Step => ({ do: 'sweep', attempt });
const heartbeat = (attempt = 0): Step => ({ do: 'heartbeat', attempt });
const cancelTask = (task = 0): Step => ({ do: 'cancelTask', task });
const cancelRun = (task = 0): Step => ({ do: 'cancelRun', task });
const retry = (task = 0): Step => ({ do: 'retry', task });
const runNow = (task = 0): Step => ({ do: 'runNow', task });
const deleteTask = (task = 0): Step => ({ do: 'delete', task });
const setPriority = (task = 0): Step => ({ do: 'setPriority', task, priority: 50 });
const story = (launches: JobName[], ...steps: Step[]): Story => ({ launches, steps });
const times = (n: number, ...steps: Step[]): Step[] => Array.from({ length: n }, () => steps).flat();
const lose: Step[] = [claimOne, pass(31), sweep()];

interface Way {
  launches: JobName[];
  steps: Step[];
  /** Which task, or which attempt from the newest, is then in the state. */
  number: number;
}
const way = (launches: JobName[], number: number, ...steps: Step[]): Way => ({ launches, number, steps });

/** In the order of the columns: blocked to deleted. */
const intoTaskStates: Way[] = [
  way(['chain'], 1),
  way(['plain'], 0),
  way(['later'], 0),
  way(['keyed', 'keyed'], 1),
  way(['plain'], 0, claim),
  way(['plain'], 0, claim, cancelTask()),
  way(['plain'], 0, claim, report('done')),
  way(['plain'], 0, claim, report('failedForGood')),
  way(['plain'], 0, cancelTask()),
  way(['plain'], 0, claim, report('done'), deleteTask()),
];
/** The same for a step whose dependency failed, so that it can be tried again and end once more. */
const firstFails = [claim, report('failedForGood')];
const intoStatesBesideDependency: Way[] = [
  way(['chain_finished'], 0, ...firstFails),
  way(['chain_finished'], 0, ...firstFails, claim, report('failed')),
  way(['keyed', 'chain_finished'], 1, claim, report('failedForGood', 0)),
  way(['chain_finished'], 0, ...firstFails, claim),
  way(['chain_finished'], 0, ...firstFails, claim, cancelTask(1)),
  way(['chain_finished'], 0, ...firstFails, claim, report('done')),
  way(['chain_finished'], 0, ...firstFails, claim, report('failedForGood')),
  way(['chain_finished'], 0, ...firstFails, cancelTask(1)),
  way(['chain_finished'], 0, ...firstFails, cancelTask(1), deleteTask(1)),
];
/** And for tasks of a run that goes on when it is cancelled, because they are protected. */
const intoProtectedStates: Way[] = [
  way(['chain_protected'], 1),
  way(['chain_protected'], 0),
  way(['chain_protected'], 0, claim, report('limited')),
  way(['keyed', 'chain_protected'], 2, claim, report('done')),
  way(['chain_protected'], 0, claim),
  way(['chain_protected'], 0, claim, cancelTask()),
  way(['chain_protected'], 0, claim, report('done')),
  way(['chain_protected'], 0, claim, report('failedForGood')),
  way(['chain_protected'], 0, cancelTask()),
  way(['chain_protected'], 0, cancelTask(), deleteTask()),
];
/** In the order of the columns, but for "heard". */
const intoAttemptStates: Way[] = [
  way(['plain'], 0, claim),
  way(['plain'], 0, claim, cancelTask()),
  way(['plain'], 0, ...lose),
  way(['plain'], 1, ...lose, claim),
  way(['chain_finished'], 0, ...firstFails, ...lose, cancelTask(1), retry(0), retry(1)),
  way(['plain'], 0, ...lose, cancelTask()),
];

const after = (ways: Way[], events: (number: number) => Step[][]): Story[] =>
  ways.flatMap(({ launches, steps, number }) =>
    events(number).map((event) => ({ launches, steps: [...steps, ...event] })),
  );
const handBackTwentyTimes = times(20, claimOne, report('handedBack'));

export const storiesOfEachCell: Story[] = [
  ...after(intoTaskStates, (n) => [
    [claim],
    [cancelTask(n)],
    [cancelRun(n)],
    [retry(n)],
    [runNow(n)],
    [setPriority(n)],
    [deleteTask(n)],
  ]),
  story(['later'], pass(31), { do: 'move' }),
  story(['keyed', 'keyed'], cancelTask(0)),
  story(['chain'], claim, report('done')),
  story(['batched_twice'], claim, report('done', 1), report('done')),
  story(['batched_twice'], claim, cancelTask(1), report('done', 1)),
  story(['batched_twice'], claim, report('failed'), report('done', 1)),
  ...after(intoStatesBesideDependency, (n) => [
    [retry(n), claimOne, report('done')],
    [retry(n), claimOne, report('failedForGood')],
  ]),
  story(['chain'], claim, report('failedForGood'), retry(1), retry(0)),
  story(['chain'], claim, report('failedForGood'), deleteTask(1), retry(0)),
  story(['chain'], cancelTask(1), claim, report('failedForGood'), retry(1)),
  story(['chain_unrenderable'], claim, report('done'), retry(1)),
  story(['chain_unrenderable'], cancelTask(1), claim, report('done'), retry(1)),
  story(['chain'], claim, report('done'), cancelRun()),
  story(['chain'], cancelTask(1), cancelRun()),
  story(['chain'], claim, cancelTask(), cancelRun()),
  story(['chain'], claim, cancelRun(), retry(0), retry(1)),
  story(['chain_finished'], ...firstFails, cancelRun()),
  story(['chain_finished'], ...firstFails, deleteTask(0), cancelRun(1)),
  ...after(intoProtectedStates, (n) => [[cancelRun(n), retry(n)]]),

  ...after(intoAttemptStates, (n) => [
    [heartbeat(n)],
    [sweep(n)],
    ...(['done', 'failed', 'failedForGood', 'stopped', 'handedBack'] as const).map((form) => [
      report(form, n),
    ]),
  ]),
  story(['plain'], claim, report('done'), heartbeat(), sweep(), report('done')),
  ...(['doneOtherwise', 'failed', 'failedForGood', 'stopped', 'handedBack'] as const).map((form) =>
    story(['plain'], claim, report('done'), report(form)),
  ),
  story(['once'], ...handBackTwentyTimes, claim, report('handedBack')),
  story(['once'], ...handBackTwentyTimes, claim, cancelTask(), report('handedBack')),
  story(['plain'], ...times(5, ...lose)),
  story(['plain'], ...times(4, ...lose), claim, cancelTask(), pass(31), sweep()),
  story(['plain'], claim, cancelTask(), pass(31), sweep()),
  ...(['plain', 'once'] as const).flatMap((job) => [
    story([job], claim, pass(101), sweep()),
    story([job], claim, cancelTask(), pass(101), sweep()),
  ]),
  story(['plain'], claim, cancelTask(), ...times(2, pass(11), heartbeat()), pass(11), sweep()),
];
