import { useEffect, useState } from 'react';

const load = async (options) => (await fetch('/api/notes', options)).json();

export default function App() {
  const [state, setState] = useState({ notes: [], written: null });
  useEffect(() => { load().then(setState); }, []);

  async function add(event) {
    event.preventDefault();
    const text = new FormData(event.target).get('text');
    setState(await load({ method: 'POST', headers: { 'content-type': 'application/json' }, body: JSON.stringify({ text }) }));
  }

  return (
    <main>
      <h1 id="text">first</h1>
      <form onSubmit={add}><input name="text" /><button>Add</button></form>
      <ul>{state.notes.map((note, i) => <li key={i}>{note}</li>)}</ul>
      <p id="written">{state.written}</p>
    </main>
  );
}
