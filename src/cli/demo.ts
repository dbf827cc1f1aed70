// Something to see at once: loading the server takes a moment.
console.log('runplane demo');
await import('./run-demo.ts');
