// SPDX-License-Identifier: Apache-2.0
import { X } from 'lucide-react';
import { Dialog as Radix } from 'radix-ui';
import type { ReactNode } from 'react';

import { text } from '../text/en';
import { IconButton } from './Button';

interface Props { title: string; about?: string; open: boolean; onClose: () => void; footer?: ReactNode; wide?: boolean; children?: ReactNode }

export function Dialog({ title, about, open, onClose, footer, wide, children }: Props) {
  return (
    <Radix.Root open={open} onOpenChange={(isOpen) => { if (!isOpen) onClose(); }}>
      <Radix.Portal>
        <Radix.Overlay className="scrim" />
        <Radix.Content className={wide ? 'dialog wide' : 'dialog'} {...(about ? {} : { 'aria-describedby': undefined })}>
          <header>
            <Radix.Title asChild><h2>{title}</h2></Radix.Title>
            <Radix.Close asChild><IconButton label={text.close} icon={X} small /></Radix.Close>
          </header>
          <div className="body stack">
            {about && <Radix.Description className="muted">{about}</Radix.Description>}
            {children}
          </div>
          {footer && <footer>{footer}</footer>}
        </Radix.Content>
      </Radix.Portal>
    </Radix.Root>
  );
}
