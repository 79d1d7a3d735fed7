// SPDX-License-Identifier: Apache-2.0
import { createRoot } from 'react-dom/client';

createRoot(document.getElementById('root')!).render(<h1>Sandlot</h1>);
