// SPDX-License-Identifier: Apache-2.0
import type { LucideIcon } from 'lucide-react';
import { DropdownMenu as Radix } from 'radix-ui';
import type { ReactNode } from 'react';

export interface Item { label: string; icon?: LucideIcon; act: () => void; bad?: boolean; disabled?: boolean; apart?: boolean }

/** A button that opens a list of actions. */
export function Menu({ trigger, items }: { trigger: ReactNode; items: Item[] }) {
  return (
    <Radix.Root modal={false}>
      <Radix.Trigger asChild>{trigger}</Radix.Trigger>
      <Radix.Portal>
        <Radix.Content className="menu" align="end" sideOffset={6} collisionPadding={8}>
          {items.map(({ label, icon: Icon, act, bad, disabled, apart }) => (
            <div key={label}>
              {apart && <Radix.Separator className="menu-line" />}
              <Radix.Item className={bad ? 'menu-item bad' : 'menu-item'} disabled={disabled} onSelect={act}>
                {Icon && <Icon size={15} aria-hidden />}{label}
              </Radix.Item>
            </div>
          ))}
        </Radix.Content>
      </Radix.Portal>
    </Radix.Root>
  );
}
