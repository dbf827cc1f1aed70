#!/usr/bin/env bash
# Makes what the example clients need: an agent, a job, and a token that may do what they do and nothing else.
# Prints the token. Needs curl, jq, and RUNPLANE_ADMIN_TOKEN.
set -euo pipefail

url=${RUNPLANE_URL:-http://127.0.0.1:4000}
gql() {
  curl -sS --fail-with-body "${url%/graphql}/graphql" \
    -H 'content-type: application/json' -H "authorization: Bearer $RUNPLANE_ADMIN_TOKEN" --data-binary @-
}

gql <<'JSON' | jq '.data[] | .version // error(.message)' >/dev/null
{
  "query": "mutation ($agent: SaveAgentInput!, $job: SaveJobInput!) { saveAgent(input: $agent) { __typename ... on SaveAgentSuccess { version } ... on Problem { message } } saveJob(input: $job) { __typename ... on SaveJobSuccess { version } ... on Problem { message } } }",
  "variables": {
    "agent": { "name": "summarizer", "dispatch": { "pull": {} } },
    "job": { "name": "summarize", "steps": [{ "name": "summarize", "agent": "summarizer" }] }
  }
}
JSON
gql <<'JSON' | jq -r '.data.createApiToken | .secret // error(.message)'
{
  "query": "mutation ($input: CreateApiTokenInput!) { createApiToken(input: $input) { ... on CreateApiTokenSuccess { secret } ... on Problem { message } } }",
  "variables": {
    "input": {
      "name": "example",
      "scopes": ["LAUNCH", "WORK", "OPERATE", "READ", "PAYLOAD_READ"],
      "jobs": ["summarize"],
      "agents": ["summarizer"]
    }
  }
}
JSON
