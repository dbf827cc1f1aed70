/**
 * The text of schema/operations/client.graphql, letter for letter, so that a server with a list of trusted documents
 * knows it. A browser cannot read the file.
 */
export const document = `query ClientStart {
  changeLogCursor
}

subscription ClientTasks($filter: TaskFilter, $after: Cursor) {
  batch: taskStatusChanged(filter: $filter, after: $after) {
    ...TaskChanges
  }
}

query ClientTaskPage($filter: TaskFilter, $after: Cursor, $waitSeconds: Float) {
  batch: taskStatusChanges(filter: $filter, after: $after, first: 200, waitSeconds: $waitSeconds) {
    ...TaskChanges
  }
}

subscription ClientRuns($filter: RunFilter, $after: Cursor) {
  batch: runStatusChanged(filter: $filter, after: $after) {
    ...RunChanges
  }
}

query ClientRunPage($filter: RunFilter, $after: Cursor, $waitSeconds: Float) {
  batch: runStatusChanges(filter: $filter, after: $after, first: 200, waitSeconds: $waitSeconds) {
    ...RunChanges
  }
}

subscription ClientEvents($of: AttemptEventsOf!, $after: Cursor) {
  batch: attemptEvents(of: $of, after: $after) {
    cursor
    caughtUp
    changes: events {
      id
      sequence
      attemptId
      taskId
      type
      at
      data
    }
  }
}

query ClientUnfinishedRuns($ids: [ID!]!) {
  runs(filter: { ids: $ids, statuses: [QUEUED, RUNNING, CANCELLING] }, first: 1) {
    nodes {
      id
    }
  }
}

fragment TaskChanges on TaskStatusChanges {
  cursor
  caughtUp
  changes {
    id
    sequence
    at
    taskId
    runId
    job
    step
    agent
    attemptId
    attemptNumber
    fromStatus
    toStatus
    errorCode
    reason
  }
}

fragment RunChanges on RunStatusChanges {
  cursor
  caughtUp
  changes {
    id
    sequence
    at
    runId
    job
    fromStatus
    toStatus
    reason
  }
}
`;
