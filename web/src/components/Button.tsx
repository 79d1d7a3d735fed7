// SPDX-License-Identifier: Apache-2.0
import type { LucideIcon } from 'lucide-react';
import type { ComponentProps } from 'react';

type Kind = 'plain' | 'primary' | 'danger' | 'ghost';
type Props = ComponentProps<'button'> & { kind?: Kind; icon?: LucideIcon; small?: boolean; busy?: boolean };

export function Button({ kind = 'plain', icon: Icon, small, busy, children, className = '', disabled, ...rest }: Props) {
  const names = ['button', kind, small ? 'small' : '', className].filter(Boolean).join(' ');
  return (
    <button type="button" className={names} disabled={disabled || busy} {...rest}>
      {busy ? <span className="spinner" aria-hidden /> : Icon && <Icon size={small ? 14 : 16} aria-hidden />}
      {children}
    </button>
  );
}

/** A button with nothing but an icon; its label is what it says to those who do not see it. */
export function IconButton({ label, icon, className = '', kind = 'ghost', ...rest }: Props & { label: string }) {
  return <Button kind={kind} icon={icon} className={`icon ${className}`} aria-label={label} title={label} {...rest} />;
}
