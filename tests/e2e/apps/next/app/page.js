'use client';

export default function Page() {
  return <h1 id="text">first</h1>;
}
