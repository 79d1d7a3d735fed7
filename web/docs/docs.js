// SPDX-License-Identifier: Apache-2.0
// Shows the API's document. "Try it out" uses the session of the console, whose cookie goes with each request; without
// one, a token can be given under Authorize. Nothing is asked from elsewhere (validatorUrl).
window.SwaggerUIBundle({
  url: '/openapi.json',
  dom_id: '#document',
  deepLinking: true,
  docExpansion: 'none',
  filter: true,
  tryItOutEnabled: true,
  persistAuthorization: false,
  validatorUrl: null,
  syntaxHighlight: { activated: true, theme: 'arta' },
  withCredentials: true,
});
