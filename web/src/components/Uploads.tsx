// SPDX-License-Identifier: Apache-2.0
import { useUploads } from '../api/upload';
import { Meter } from './Basics';

/** The uploads that are under way, with how far they are. */
export function Uploads() {
  const uploads = useUploads();
  if (uploads.length === 0) return null;
  return (
    <div className="uploads stack tight">
      {uploads.map(({ key, name, size, sent }) => (
        <div key={key} className="small">
          <div className="row spread"><span className="ellipsis">{name}</span><span className="number muted">{Math.round((sent / Math.max(size, 1)) * 100)} %</span></div>
          <Meter plain label={name} used={sent} limit={Math.max(size, 1)} />
        </div>
      ))}
    </div>
  );
}
