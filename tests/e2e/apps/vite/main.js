import { text } from '/message.js';

const show = (value) => { document.querySelector('#text').textContent = value; };

show(text);
if (import.meta.hot) import.meta.hot.accept('/message.js', (module) => show(module.text));
