/** Exchanges a token for the session of a page. */
export const signInPage = `<!doctype html>
<html lang="en">
  <head>
    <meta charset="utf-8">
    <title>Runplane: sign in</title>
    <style>
      body { font: 16px system-ui, sans-serif; max-width: 26rem; margin: 20vh auto 0; padding: 0 1rem; }
      label, input, button { display: block; width: 100%; box-sizing: border-box; margin: 0.5rem 0; font: inherit; padding: 0.4rem; }
      label { padding: 0; }
    </style>
  </head>
  <body>
    <h1>Runplane</h1>
    <form>
      <label for="token">API token</label>
      <input id="token" type="password" autocomplete="off" required autofocus>
      <button>Sign in</button>
      <p role="alert"></p>
    </form>
    <script>
      const form = document.querySelector('form');
      form.addEventListener('submit', async (event) => {
        event.preventDefault();
        const token = document.getElementById('token').value;
        const response = await fetch('/session', {
          method: 'POST',
          headers: { 'content-type': 'application/json' },
          body: JSON.stringify({ token }),
        });
        if (response.ok) location.reload();
        else document.querySelector('[role=alert]').textContent = 'The token is not valid.';
      });
    </script>
  </body>
</html>
`;
