// SPDX-License-Identifier: Apache-2.0
// The places of the console, for the side bar and the palette.
import { Boxes, Camera, Cpu, FileClock, FolderKanban, Gauge, KeyRound, Layers, ListChecks, Plug, Rocket, ScrollText, SquareFunction, Vault, type LucideIcon } from 'lucide-react';

import { text } from '../text/en';

export interface Place { path: string; label: string; icon: LucideIcon; outside?: boolean }

export const PLACES: { title: string; places: Place[] }[] = [
  {
    title: '',
    places: [
      { path: '/', label: text.nav.sandboxes, icon: Boxes },
      { path: '/projects', label: text.nav.projects, icon: FolderKanban },
      { path: '/launches', label: text.nav.launches, icon: Rocket },
      { path: '/functions', label: text.nav.functions, icon: SquareFunction },
      { path: '/templates', label: text.nav.templates, icon: Layers },
      { path: '/snapshots', label: text.nav.snapshots, icon: Camera },
      { path: '/jobs', label: text.nav.jobs, icon: ListChecks },
    ],
  },
  {
    title: text.nav.server,
    places: [
      { path: '/host', label: text.nav.host, icon: Cpu },
      { path: '/quotas', label: text.nav.quotas, icon: Gauge },
      { path: '/audit', label: text.nav.audit, icon: FileClock },
    ],
  },
  {
    title: text.nav.access,
    places: [
      { path: '/tokens', label: text.nav.tokens, icon: KeyRound },
      { path: '/secrets', label: text.nav.secrets, icon: Vault },
      { path: '/connect', label: text.nav.connect, icon: Plug },
      { path: '/docs', label: text.nav.docs, icon: ScrollText, outside: true },
    ],
  },
];
