// SPDX-License-Identifier: Apache-2.0
// Shows the API's document. "Try it out" uses the session of the console, whose cookie goes with each request; without
// one, a token can be given under Authorize. Nothing is asked from elsewhere (validatorUrl).

/** As the console has it (src/app/theme.ts). */
function theme() {
  let choice = 'system';
  try { choice = JSON.parse(localStorage.getItem('sandlot.theme') ?? '"system"'); } catch { /* as the system */ }
  const isLight = choice === 'light' || (choice === 'system' && matchMedia('(prefers-color-scheme: light)').matches);
  document.documentElement.dataset.theme = isLight ? 'light' : 'dark';
}
theme();
matchMedia('(prefers-color-scheme: light)').addEventListener('change', theme);
addEventListener('storage', theme);

/** What is said of something before it, for those who cannot see where it stands. */
function labelOf(element) {
  const row = element.closest('tr')?.querySelector('.parameter__name')?.firstChild?.textContent;
  const section = element.closest('.opblock-section, .responses-wrapper, .auth-container')?.querySelector('h4')?.textContent;
  return (row ?? element.getAttribute('placeholder') ?? section ?? element.getAttribute('title') ?? element.id ?? '').trim() || 'Value';
}

/** Swagger UI gives some of its fields no name, puts links into buttons, and lets parts scroll that no key reaches. */
function mend() {
  for (const field of document.querySelectorAll('.swagger-ui select, .swagger-ui input, .swagger-ui textarea')) {
    if (!field.hasAttribute('aria-label') && (field.id === 'servers' || !field.labels?.length)) field.setAttribute('aria-label', field.id === 'servers' ? 'Server' : labelOf(field));
  }
  // A link inside of a button, which does what the button does.
  for (const link of document.querySelectorAll('.swagger-ui button a.nostyle[href]')) link.removeAttribute('href');
  for (const part of document.querySelectorAll('.swagger-ui .microlight, .swagger-ui .opblock-body, .swagger-ui .body-param__example')) {
    if ((part.scrollWidth > part.clientWidth || part.scrollHeight > part.clientHeight) && !part.hasAttribute('tabindex')) part.tabIndex = 0;
  }
  for (const button of document.querySelectorAll('.swagger-ui button:not([aria-label])')) {
    if (!button.textContent.trim()) button.setAttribute('aria-label', button.title || 'Open or close');
  }
}
let isDue = false;
new MutationObserver(() => {
  if (isDue) return;
  isDue = true;
  requestAnimationFrame(() => { isDue = false; mend(); });
}).observe(document.getElementById('document'), { childList: true, subtree: true });

/**
 * Swagger UI shows a button Execute before it has put together what the operation is, and loses a click on it: the page
 * would wait for an answer to a request that nobody sent. Until then the button is off.
 */
const patient = ({ React }) => ({
  wrapComponents: { execute: (Execute) => (props) => React.createElement(Execute, { ...props, disabled: props.disabled || !props.operation?.size }) },
});

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
  plugins: [patient],
});
