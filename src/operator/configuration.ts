import { deleteRoute } from './delete-route.ts';
import { installJob } from './install-job.ts';
import { setPaused } from './pause.ts';
import { createRoutePreview } from './preview-routes.ts';
import { type SaveContext, save } from './save.ts';
import { agentKind } from './save-agent.ts';
import { jobKind } from './save-job.ts';
import { poolKind } from './save-pool.ts';
import { queueKind } from './save-queue.ts';
import { routeKind } from './save-route.ts';
import { throttleKind } from './save-throttle.ts';
import type { Configuration } from './types.ts';

export function createConfiguration(context: SaveContext): Configuration {
  return {
    saveJob: (input, actor) => save(context, jobKind, 'SaveJobSuccess', input, actor),
    saveAgent: (input, actor) => save(context, agentKind, 'SaveAgentSuccess', input, actor),
    saveThrottle: (input, actor) => save(context, throttleKind, 'SaveThrottleSuccess', input, actor),
    saveQueue: (input, actor) => save(context, queueKind, 'SaveQueueSuccess', input, actor),
    savePool: (input, actor) => save(context, poolKind, 'SavePoolSuccess', input, actor),
    saveRoute: (input, actor) => save(context, routeKind, 'SaveRouteSuccess', input, actor),
    installJob: (input, actor) => installJob(context, input, actor),
    deleteRoute: (input, actor) => deleteRoute(context, input, actor),
    previewRoutes: createRoutePreview(context.db),
    pauseQueue: (input, actor) => setPaused(context, 'queue', 'SaveQueueSuccess', true, input, actor),
    resumeQueue: ({ name }, actor) => setPaused(context, 'queue', 'SaveQueueSuccess', false, { name }, actor),
    pauseAgent: (input, actor) => setPaused(context, 'agent', 'SaveAgentSuccess', true, input, actor),
    resumeAgent: ({ name }, actor) => setPaused(context, 'agent', 'SaveAgentSuccess', false, { name }, actor),
  };
}
