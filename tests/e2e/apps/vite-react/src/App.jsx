import { useState } from 'react';

export default function App() {
  const [count, setCount] = useState(0);
  return (
    <main>
      <h1 id="text">first</h1>
      <button onClick={() => setCount(count + 1)}>{count}</button>
    </main>
  );
}
