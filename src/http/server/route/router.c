/* SPDX-License-Identifier: Apache-2.0 */
#include "http/server/route/router.h"
#include "base/format.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

#define PATH_SHOWN_MAX 160

/* One place in a path. */
struct node {
	char *text;   /* NULL for a variable segment */
	bool is_rest; /* a variable one that takes all segments that follow too */
	struct node *children, *next;
	const struct route *routes[METHOD_COUNT];
};

struct router {
	struct node root;
};

static const char *const method_names[METHOD_COUNT] = {
	[METHOD_GET] = "GET",
	[METHOD_HEAD] = "HEAD",
	[METHOD_POST] = "POST",
	[METHOD_PUT] = "PUT",
	[METHOD_PATCH] = "PATCH",
	[METHOD_DELETE] = "DELETE",
};

enum method method_parse(const char *name)
{
	enum method method = METHOD_GET;

	while (method < METHOD_COUNT && strcmp(method_names[method], name) != 0)
		method++;
	return method;
}

static bool is_variable(const char *segment, size_t len)
{
	return len > 2 && segment[0] == '{' && segment[len - 1] == '}';
}

/* "{path*}", which stands last. */
static bool is_rest(const char *segment, size_t len)
{
	return is_variable(segment, len) && segment[len - 2] == '*';
}

static struct node *child_for(struct node *parent, const char *segment, size_t len)
{
	bool variable = is_variable(segment, len);
	struct node **at = &parent->children;

	/* Variable ones are kept last, which is what makes a fixed one win. */
	for (; *at; at = &(*at)->next) {
		if (!(*at)->text)
			break;
		if (!variable && strlen((*at)->text) == len &&
			memcmp((*at)->text, segment, len) == 0)
			return *at;
	}
	if (!*at || !variable) {
		struct node *node = mem_new(sizeof(*node));

		node->next = *at;
		node->text = variable ? NULL : mem_printf("%.*s", (int)len, segment);
		node->is_rest = is_rest(segment, len);
		*at = node;
	}
	assert((*at)->is_rest == is_rest(segment, len));
	return *at;
}

static void add_route(struct router *router, const struct route *route)
{
	enum method method = method_parse(route->method);
	struct node *node = &router->root;
	const char *at = route->path;
	unsigned variables = 0;

	assert(at[0] == '/' && method < METHOD_COUNT);
	assert(!(route->flags & ROUTE_WEBSOCKET) ||
		(method == METHOD_GET && !(route->flags & (ROUTE_BODY | ROUTE_RAW_BODY))));
	while (at[0] == '/' && at[1] != '\0') {
		const char *segment = at + 1;
		size_t len = strcspn(segment, "/");

		assert(len > 0);
		variables += is_variable(segment, len);
		node = child_for(node, segment, len);
		at = segment + len;
	}
	assert(variables <= ROUTE_PARAMS && !node->routes[method]);
	assert(variables > 0 || !(route->flags & ROUTE_WAITS));
	node->routes[method] = route;
}

struct router *router_new(const struct route *routes, size_t count)
{
	struct router *router = mem_new(sizeof(*router));

	for (size_t i = 0; i < count; i++)
		add_route(router, &routes[i]);
	return router;
}

static void free_children(struct node *parent)
{
	while (parent->children) {
		struct node *node = parent->children;

		parent->children = node->next;
		free_children(node);
		free(node->text);
		free(node);
	}
}

void router_free(struct router *router)
{
	if (!router)
		return;
	free_children(&router->root);
	free(router);
}

static const struct route *route_of(const struct node *node, enum method method)
{
	if (method == METHOD_HEAD && !node->routes[METHOD_HEAD])
		method = METHOD_GET;
	return node->routes[method];
}

/* The route below node for the segments from `depth` on; *allowed collects what else is there. */
static const struct route *find(const struct node *node, const struct target *target,
	unsigned depth, enum method method, unsigned *allowed)
{
	if (depth == target->segment_count) {
		for (enum method m = METHOD_GET; m < METHOD_COUNT; m++)
			if (route_of(node, m))
				*allowed |= 1u << m;
		return method < METHOD_COUNT ? route_of(node, method) : NULL;
	}
	for (const struct node *child = node->children; child; child = child->next) {
		const char *segment = target->segments[depth];
		const struct route *route = NULL;

		if (child->is_rest)
			route = find(child, target, target->segment_count, method, allowed);
		else if (child->text ? strcmp(child->text, segment) == 0 : *segment != '\0')
			route = find(child, target, depth + 1, method, allowed);
		if (route)
			return route;
	}
	return NULL;
}

static void list_methods(unsigned allowed, char *text, size_t size)
{
	size_t len = 0;

	text[0] = '\0';
	for (enum method m = METHOD_GET; m < METHOD_COUNT; m++)
		if (allowed & 1u << m)
			len = format_append(
				text, size, len, "%s%s", len ? ", " : "", method_names[m]);
}

/* The path as it was asked for, as far as there is room; what is not plain is a question mark. */
static const char *list_path(const struct target *target, char *text, size_t size)
{
	size_t len = format_append(text, size, 0, "%s", target->segment_count ? "" : "/");

	for (unsigned i = 0; i < target->segment_count; i++)
		len = format_append(text, size, len, "/%s", target->segments[i]);
	for (char *c = text; *c; c++)
		if (*c < ' ' || *c > '~')
			*c = '?';
	return text;
}

/* The segments from `first` on, decoded, with slashes between them. */
static char *join_rest(const struct target *target, unsigned first, struct arena *arena)
{
	size_t size = 1, len = 0;
	char *rest;

	for (unsigned i = first; i < target->segment_count; i++)
		size += strlen(target->segments[i]) + 1;
	rest = arena_alloc(arena, size);
	rest[0] = '\0';
	for (unsigned i = first; i < target->segment_count; i++)
		len = format_append(
			rest, size, len, "%s%s", i > first ? "/" : "", target->segments[i]);
	return rest;
}

/* Names the variable segments as this route calls them. */
static void bind_params(
	const struct target *target, struct arena *arena, struct router_match *match)
{
	const char *at = match->route->path;

	for (unsigned i = 0; i < target->segment_count; i++) {
		const char *segment = at + 1;
		size_t len = strcspn(segment, "/");

		if (is_rest(segment, len)) {
			match->params[match->param_count++] =
				(struct target_param){arena_strndup(arena, segment + 1, len - 3),
					join_rest(target, i, arena)};
			return;
		}
		if (is_variable(segment, len))
			match->params[match->param_count++] = (struct target_param){
				arena_strndup(arena, segment + 1, len - 2), target->segments[i]};
		at = segment + len;
	}
}

int router_find(const struct router *router, enum method method, const struct target *target,
	struct arena *arena, struct router_match *ret_match, struct err *err)
{
	struct router_match match = {0};
	char path[PATH_SHOWN_MAX];
	unsigned allowed = 0;

	match.route = find(&router->root, target, 0, method, &allowed);
	if (!match.route && !allowed)
		return err_explain(err, ERR_NOT_FOUND, "route_not_found",
			"GET /openapi.json lists all routes", "no such route: %s%s%s",
			method < METHOD_COUNT ? method_names[method] : "",
			method < METHOD_COUNT ? " " : "", list_path(target, path, sizeof(path)));
	if (!match.route) {
		list_methods(allowed, ret_match->allow, sizeof(ret_match->allow));
		return err_set(err, ERR_METHOD, "this route does not have that method; it has %s",
			ret_match->allow);
	}
	bind_params(target, arena, &match);
	*ret_match = match;
	return 0;
}
