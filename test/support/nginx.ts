import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { freePort } from './free-port.ts';

export interface Nginx {
  /** Speaks HTTP/2 from the first byte. */
  url: string;
  stop(): Promise<void>;
}

/** Debian's nginx before servers, as docs/operating.md configures it, and compressing all that it may. */
export async function startNginx(servers: string[]): Promise<Nginx> {
  const directory = mkdtempSync(join(tmpdir(), 'runplane-nginx-'));
  const port = await freePort();
  const file = join(directory, 'nginx.conf');
  writeFileSync(
    file,
    `daemon off;
pid ${directory}/pid;
error_log stderr notice;
events {}
http {
  access_log off;
  gzip on;
  gzip_types *;
  gzip_min_length 0;
  gzip_proxied any;
  client_body_temp_path ${directory}/body;
  proxy_temp_path ${directory}/proxy;
  fastcgi_temp_path ${directory}/fastcgi;
  uwsgi_temp_path ${directory}/uwsgi;
  scgi_temp_path ${directory}/scgi;
  upstream runplane {
    ${servers.map((url) => `server ${new URL(url).host};`).join('\n    ')}
  }
  server {
    listen 127.0.0.1:${port} http2;
    location / {
      proxy_pass http://runplane;
      proxy_http_version 1.1;
      proxy_set_header Connection "";
      proxy_set_header Host $http_host;
    }
  }
}
`,
  );
  const nginx = spawn('/usr/sbin/nginx', ['-c', file, '-e', 'stderr'], {
    stdio: ['ignore', 'ignore', 'pipe'],
  });
  const ended = once(nginx, 'exit');
  await new Promise<void>((resolve, reject) => {
    let output = '';
    nginx.stderr.on('data', (chunk: Buffer) => {
      output += chunk.toString();
      // Its last word before it works.
      if (output.includes('start worker process ')) resolve();
    });
    nginx.once('exit', (code) => reject(new Error(`nginx ended with ${code}: ${output}`)));
  });
  return {
    url: `http://127.0.0.1:${port}`,
    stop: async () => {
      nginx.kill('SIGTERM');
      await ended;
      rmSync(directory, { recursive: true, force: true });
    },
  };
}
