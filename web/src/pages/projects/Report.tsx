// SPDX-License-Identifier: Apache-2.0
// What a project is made of, and what would keep it from running; looked for when somebody asks.
import { useQuery } from '@tanstack/react-query';
import { CircleCheck, ScanSearch } from 'lucide-react';

import { call, part } from '../../api/client';
import type { Detection, Project, Validation } from '../../api/schema';
import { Badge, Bones, Card, Empty, Failure } from '../../components/Basics';
import { Button } from '../../components/Button';
import { Findings } from '../launches/Findings';
import { Parts } from '../launches/Parts';
import { text } from '../../text/en';

export function Report({ project }: { project: Project }) {
  const path = `/v1/projects/${part(project.id)}`;
  const detection = useQuery({ queryKey: ['detection', project.id], queryFn: ({ signal }) => call<Detection>('GET', `${path}/detection`, { signal }), enabled: project.files > 0 });
  // It is asked for by a click: it reads all files.
  const report = useQuery({ queryKey: ['validation', project.id], queryFn: ({ signal }) => call<Validation>('POST', `${path}/validate`, { signal }), enabled: false, retry: false });
  const check = <Button small icon={ScanSearch} busy={report.isFetching} disabled={project.files === 0} onClick={() => void report.refetch()}>{text.projects.check}</Button>;
  return (
    <Card title={text.projects.report} actions={check}>
      {project.files === 0 ? <p className="body muted">{text.projects.emptyReport}</p> : <div className="body stack">{detection.isPending && <Bones count={2} />}{detection.data && <Parts detection={detection.data} />}{detection.error && <Failure error={detection.error} />}</div>}
      {report.error && <Failure error={report.error} />}
      {report.data && (report.data.findings.length === 0 ? <Empty icon={CircleCheck} title={text.projects.valid}><p>{text.projects.validAbout}</p></Empty> : (
        <div className="body stack">
          <div><Badge tone={report.data.valid ? 'ok' : 'bad'}>{report.data.valid ? text.projects.valid : text.projects.invalid}</Badge></div>
          <Findings findings={report.data.findings} />
        </div>
      ))}
    </Card>
  );
}
