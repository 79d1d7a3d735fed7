// SPDX-License-Identifier: Apache-2.0
// A token is all that is needed; it is exchanged for a cookie and kept nowhere else.
import { useState } from 'react';

import { ApiError } from '../../api/client';
import { signIn } from '../../api/session';
import { Button } from '../../components/Button';
import { TextField } from '../../components/Field';
import icon from '../../icon.svg';
import { useTitle } from '../../lib/hooks';
import { text } from '../../text/en';

export function SignInPage() {
  const [token, setToken] = useState('');
  const [fault, setFault] = useState<string | null>(null);
  const [isBusy, setBusy] = useState(false);
  useTitle(text.signIn.title);

  const submit = async () => {
    setBusy(true);
    setFault(null);
    try {
      await signIn(token.trim());
    } catch (error) {
      setFault(error instanceof ApiError && error.status === 401 ? text.signIn.wrong : error instanceof Error ? error.message : String(error));
    }
    setBusy(false);
  };
  return (
    <main className="sign-in">
      <form className="stack wide" onSubmit={(event) => { event.preventDefault(); void submit(); }}>
        <div>
          <img className="mark" src={icon} alt="" />
          <h1>{text.signIn.title}</h1>
          <p className="muted">{text.signIn.about}</p>
        </div>
        <TextField label={text.signIn.token} type="password" name="token" value={token} onText={setToken} fault={fault} hint={text.signIn.hint} autoFocus required mono autoComplete="current-password" />
        <Button kind="primary" type="submit" busy={isBusy} disabled={!token.trim()}>{text.signIn.button}</Button>
      </form>
    </main>
  );
}
