/* SPDX-License-Identifier: Apache-2.0 */
#include "proxy/message/proxy_way.h"

#include "base/fd.h"

void proxy_way_fini(struct proxy_way *way)
{
	fd_close(way->fd);
	buf_fini(&way->body);
	buf_fini(&way->fields);
	buf_fini(&way->put_fields);
	*way = (struct proxy_way){.fd = -1};
}
