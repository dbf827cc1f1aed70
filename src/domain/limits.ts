/** Limits of what one request, object or stream may hold. Every refusal names the limit; `Query.server` serves them. */
export const limits = {
  bodyBytes: 1024 * 1024,
  /** Bodies whose every root field is reportResult(s) may be this large. */
  resultBodyBytes: 8 * 1024 * 1024,
  /** Of bodies that are being sent without a credential, all together. */
  strangersBodyBytes: 64 * 1024 * 1024,
  /** Of a GraphQL document, and of what its operations ask for. */
  queryTokens: 5000,
  queryDepth: 20,
  queryAliases: 50,
  queryRootFields: 20,
  /** Values that an answer may have: a page counts for as many as were asked for. */
  queryCost: 200_000,
  /** Entries of a list that no argument bounds, as far as the cost is concerned. */
  assumedListSize: 10,
  batch: 1000,
  /** Objects that one action on all that a filter matches changes. */
  bulk: 10_000,
  stepsOfJob: 100,
  /** Assets that a step reads. */
  assetsOfStep: 100,
  /** Steps from the asset that a lineage is of. */
  lineageDepth: 100,
  spawnedByResult: 1000,
  tasksOfRun: 100_000,
  /** Different steps among a task and those above it. */
  stepsOfBranch: 100,
  /** Steps that wait for each other in a row, and all that are looked at, from what a result spawns. */
  waitingDepth: 200,
  waitingSteps: 10_000,
  /** Entries of steps.<name>.tasks in templates, and their bytes. */
  templateTasks: 1000,
  templateTasksBytes: 8 * 1024 * 1024,
  labels: 32,
  labelKeyBytes: 63,
  labelValueBytes: 200,
  nameBytes: 200,
  /** Of text for people: a description, a reason. */
  textBytes: 8192,
  /** Agents, jobs or topics that a token is restricted to. */
  restrictions: 200,
  claim: 100,
  waitSeconds: 25,
  leaseSeconds: { min: 5, max: 3600 },
  timeoutSeconds: 86_400,
  throttlesOfAgent: 4,
  priority: { min: -1000, max: 1000 },
  maxAttempts: 1000,
  /** 30 days. */
  retryDelaySeconds: 2_592_000,
  retryOverrides: 100,
  /** 7 days; that an error asks to wait for. */
  retryAfterSeconds: 604_800,
  /** Requests that one entry of usage stands for. */
  requestsOfUsage: 1_000_000,
  debounceSeconds: 86_400,
  /** 7 days. */
  debounceMaxSeconds: 604_800,
  weight: 100,
  slots: 1000,
  page: 200,
  defaultPage: 50,
  /** Operations that one stream carries. */
  operationsOfStream: 100,
  /** Streams of a process in single-connection mode, reserved and open ones. */
  reservedStreams: 1000,
  /** That a reserved stream waits for its connection. */
  reservationSeconds: 30,
  /** Messages of such a stream that were produced and not yet written. */
  unsentMessages: 16,
  /** That a client may leave what was sent to it unread. */
  streamUnreadSeconds: 60,
  /** Open at once; another one ends the oldest. */
  sessionsOfToken: 50,
  /** That a connection may be silent in the middle of a request or an answer. */
  silentSeconds: 120,
  streamBufferEvents: 256,
  streamBufferBytes: 256 * 1024,
  errorMessageBytes: 8192,
  checkpointBytes: 64 * 1024,
  metadataBytes: 16 * 1024,
  /** Events that an attempt appends at once; its events altogether, and their bytes. */
  appendedEvents: 500,
  eventDataBytes: 64 * 1024,
  attemptEvents: 20_000,
  attemptEventBytes: 32 * 1024 * 1024,
  jsonDepth: 64,
  jsonNodes: 100_000,
  jsonBytes: 1024 * 1024,
  /** Entries of one range() of a template. */
  templateRange: 100_000,
  templateMs: 250,
  schemaCompileMs: 2000,
  schemaCheckMs: 250,
  /** For the templates and schemas of all that share a transaction; after that each may take no longer than… */
  sharedMs: 500,
  /** …this: plenty for any that does not run away. */
  hurriedMs: 10,
  configErrors: 100,
  resultJsonBytes: 8 * 1024 * 1024,
} as const;
