// SPDX-License-Identifier: Apache-2.0
// A page that breaks leaves the rest of the console whole, and says what happened. After an update of the server its old
// files are gone: then the page is loaded anew.
import { Component, type ReactNode } from 'react';

import { Failure } from '../components/Basics';

export class Boundary extends Component<{ children: ReactNode }, { error: Error | null }> {
  override state: { error: Error | null } = { error: null };

  static getDerivedStateFromError(error: Error) { return { error }; }

  override render() {
    const { error } = this.state;
    if (!error) return this.props.children;
    const isOld = /dynamically imported module|importing a module/i.test(error.message);
    return <Failure error={error} retry={() => { if (isOld) location.reload(); else this.setState({ error: null }); }} />;
  }
}
