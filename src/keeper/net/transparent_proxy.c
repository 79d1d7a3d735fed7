/* SPDX-License-Identifier: Apache-2.0 */
#include "keeper/net/transparent_proxy.h"

#include "base/buf.h"
#include "base/fd.h"
#include "wire/egress.h"

#include <arpa/inet.h>
#include <errno.h>
#include <linux/fib_rules.h>
#include <linux/netfilter.h>
#include <linux/netfilter/nf_tables.h>
#include <linux/netfilter/nfnetlink.h>
#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <string.h>
#include <sys/socket.h>

#define MESSAGES_MAX  8192
#define LOOPBACK_LINK 1 /* the index of lo in every namespace */
#define DPORT_OFFSET  2 /* in a UDP header */
#define PING_PRIORITY 1 /* after the table of local routes, before the table that has our route */

static const char table_name[] = "sandlot";

/* What differs between the two versions of IP. */
struct version {
	uint8_t family; /* of sockets; that of nf_tables has the same number */
	uint32_t at;	/* where in a header the address is that it goes to */
	uint8_t loopback[16];
	uint32_t loopback_len; /* of what all addresses of lo have in common */
	uint8_t own[16];       /* EGRESS_OWN_* */
	uint32_t len;	       /* of an address */
};

static const struct version v4 = {.family = AF_INET,
	.at = 16,
	.loopback = {127},
	.loopback_len = 1,
	.own = {EGRESS_OWN_ADDRESS >> 24, EGRESS_OWN_ADDRESS >> 16 & 255,
		EGRESS_OWN_ADDRESS >> 8 & 255, EGRESS_OWN_ADDRESS & 255},
	.len = 4};
static const struct version v6 = {.family = AF_INET6,
	.at = 24,
	.loopback = {[15] = 1},
	.loopback_len = 16,
	.own = EGRESS_OWN_V6,
	.len = 16};
static const struct version *const versions[] = {&v4, &v6};

/* --- messages: a header, a family, attributes that may nest --- */

static size_t open_message(
	struct buf *out, uint16_t type, uint16_t flags, const void *head, size_t len)
{
	size_t at = out->len;
	struct nlmsghdr message = {.nlmsg_type = type, .nlmsg_flags = NLM_F_REQUEST | flags};

	buf_append(out, &message, sizeof(message));
	buf_append(out, head, len);
	return at;
}

static void close_message(struct buf *out, size_t at)
{
	uint32_t len = (uint32_t)(out->len - at);

	if (!out->failed)
		memcpy(out->data + at, &len, sizeof(len));
}

static void put(struct buf *out, uint16_t type, const void *data, size_t len)
{
	struct nlattr attribute = {.nla_len = (uint16_t)(NLA_HDRLEN + len), .nla_type = type};

	buf_append(out, &attribute, sizeof(attribute));
	buf_append(out, data, len);
	buf_append(out, "\0\0\0", NLA_ALIGN(len) - len);
}

static void put_text(struct buf *out, uint16_t type, const char *text)
{
	put(out, type, text, strlen(text) + 1);
}

static void put_number(struct buf *out, uint16_t type, uint32_t number)
{
	number = htonl(number);
	put(out, type, &number, sizeof(number));
}

static size_t open_nest(struct buf *out, uint16_t type)
{
	size_t at = out->len;

	put(out, type | NLA_F_NESTED, "", 0);
	return at;
}

static void close_nest(struct buf *out, size_t at)
{
	uint16_t len = (uint16_t)(out->len - at);

	if (!out->failed)
		memcpy(out->data + at, &len, sizeof(len));
}

/* --- nf_tables: a rule is a list of expressions over registers; it ends where one does not hold --- */

struct expression {
	size_t element, data;
};

static struct expression open_expression(struct buf *out, const char *name)
{
	struct expression expression = {.element = open_nest(out, NFTA_LIST_ELEM)};

	put_text(out, NFTA_EXPR_NAME, name);
	expression.data = open_nest(out, NFTA_EXPR_DATA);
	return expression;
}

static void close_expression(struct buf *out, struct expression expression)
{
	close_nest(out, expression.data);
	close_nest(out, expression.element);
}

static void load_protocol(struct buf *out)
{
	struct expression meta = open_expression(out, "meta");

	put_number(out, NFTA_META_KEY, NFT_META_L4PROTO);
	put_number(out, NFTA_META_DREG, NFT_REG_1);
	close_expression(out, meta);
}

static void load_bytes(struct buf *out, uint32_t header, uint32_t offset, uint32_t len)
{
	struct expression payload = open_expression(out, "payload");

	put_number(out, NFTA_PAYLOAD_DREG, NFT_REG_1);
	put_number(out, NFTA_PAYLOAD_BASE, header);
	put_number(out, NFTA_PAYLOAD_OFFSET, offset);
	put_number(out, NFTA_PAYLOAD_LEN, len);
	close_expression(out, payload);
}

static void compare(struct buf *out, uint32_t how, const void *value, size_t len)
{
	struct expression comparison = open_expression(out, "cmp");
	size_t data;

	put_number(out, NFTA_CMP_SREG, NFT_REG_1);
	put_number(out, NFTA_CMP_OP, how);
	data = open_nest(out, NFTA_CMP_DATA);
	put(out, NFTA_DATA_VALUE, value, len);
	close_nest(out, data);
	close_expression(out, comparison);
}

static void match_protocol(struct buf *out, uint8_t protocol)
{
	load_protocol(out);
	compare(out, NFT_CMP_EQ, &protocol, 1);
}

static void match_loopback(struct buf *out, const struct version *ip, uint32_t how)
{
	load_bytes(out, NFT_PAYLOAD_NETWORK_HEADER, ip->at, ip->loopback_len);
	compare(out, how, ip->loopback, ip->loopback_len);
}

static void match_own_address(struct buf *out, const struct version *ip, uint32_t how)
{
	load_bytes(out, NFT_PAYLOAD_NETWORK_HEADER, ip->at, ip->len);
	compare(out, how, ip->own, ip->len);
}

static void accept_packet(struct buf *out)
{
	struct expression immediate = open_expression(out, "immediate");
	size_t data, exit_reason;

	put_number(out, NFTA_IMMEDIATE_DREG, NFT_REG_VERDICT);
	data = open_nest(out, NFTA_IMMEDIATE_DATA);
	exit_reason = open_nest(out, NFTA_DATA_VERDICT);
	put_number(out, NFTA_VERDICT_CODE, NF_ACCEPT);
	close_nest(out, exit_reason);
	close_nest(out, data);
	close_expression(out, immediate);
}

static void give_to_listener(struct buf *out, const struct version *ip)
{
	struct expression immediate = open_expression(out, "immediate"), tproxy;
	size_t data;

	put_number(out, NFTA_IMMEDIATE_DREG, NFT_REG_1);
	data = open_nest(out, NFTA_IMMEDIATE_DATA);
	put(out, NFTA_DATA_VALUE, &(uint16_t){htons(EGRESS_PROXY_PORT)}, 2);
	close_nest(out, data);
	close_expression(out, immediate);
	tproxy = open_expression(out, "tproxy");
	put_number(out, NFTA_TPROXY_FAMILY, ip->family);
	put_number(out, NFTA_TPROXY_REG_PORT, NFT_REG_1);
	close_expression(out, tproxy);
}

static size_t open_nft_message(
	struct buf *out, const struct version *ip, uint16_t kind, uint16_t flags)
{
	struct nfgenmsg head = {.nfgen_family = ip->family, .version = NFNETLINK_V0};

	return open_message(out, NFNL_SUBSYS_NFTABLES << 8 | kind, flags, &head, sizeof(head));
}

static void put_batch_mark(struct buf *out, uint16_t kind)
{
	struct nfgenmsg head = {.version = NFNETLINK_V0, .res_id = htons(NFNL_SUBSYS_NFTABLES)};

	close_message(out, open_message(out, kind, 0, &head, sizeof(head)));
}

static void put_table(struct buf *out, const struct version *ip)
{
	size_t at = open_nft_message(out, ip, NFT_MSG_NEWTABLE, NLM_F_CREATE);

	put_text(out, NFTA_TABLE_NAME, table_name);
	close_message(out, at);
}

static void put_chain(struct buf *out, const struct version *ip, const char *name, uint32_t hook,
	int32_t priority, uint32_t policy)
{
	size_t at = open_nft_message(out, ip, NFT_MSG_NEWCHAIN, NLM_F_CREATE), nest;

	put_text(out, NFTA_CHAIN_TABLE, table_name);
	put_text(out, NFTA_CHAIN_NAME, name);
	nest = open_nest(out, NFTA_CHAIN_HOOK);
	put_number(out, NFTA_HOOK_HOOKNUM, hook);
	put_number(out, NFTA_HOOK_PRIORITY, (uint32_t)priority);
	close_nest(out, nest);
	put_number(out, NFTA_CHAIN_POLICY, policy);
	put_text(out, NFTA_CHAIN_TYPE, "filter");
	close_message(out, at);
}

/* --- our rules --- */

static void rule_tcp_to_listener(struct buf *out, const struct version *ip)
{
	match_protocol(out, IPPROTO_TCP);
	match_loopback(out, ip, NFT_CMP_NEQ);
	match_own_address(out, ip, NFT_CMP_NEQ);
	give_to_listener(out, ip);
	accept_packet(out);
}

static void rule_tcp_passes(struct buf *out, const struct version *ip)
{
	(void)ip;
	match_protocol(out, IPPROTO_TCP);
	accept_packet(out);
}

static void rule_loopback_passes(struct buf *out, const struct version *ip)
{
	match_loopback(out, ip, NFT_CMP_EQ);
	accept_packet(out);
}

static void rule_own_address_passes(struct buf *out, const struct version *ip)
{
	match_own_address(out, ip, NFT_CMP_EQ);
	accept_packet(out);
}

static void rule_dns_passes(struct buf *out, const struct version *ip)
{
	(void)ip;
	match_protocol(out, IPPROTO_UDP);
	load_bytes(out, NFT_PAYLOAD_TRANSPORT_HEADER, DPORT_OFFSET, 2);
	compare(out, NFT_CMP_EQ, &(uint16_t){htons(EGRESS_DNS_PORT)}, 2);
	accept_packet(out);
}

static const struct {
	const char *chain;
	void (*write)(struct buf *out, const struct version *ip);
	bool is_of_v4; /* alone */
} rules[] = {
	{"in", rule_tcp_to_listener, false},
	{"out", rule_dns_passes, true}, /* the socket that datagrams arrive at is of IPv4 */
	{"out", rule_tcp_passes, false},
	{"out", rule_loopback_passes, false},
	{"out", rule_own_address_passes, false},
};

static void put_rule(struct buf *out, const struct version *ip, size_t i, uint16_t flags)
{
	size_t at = open_nft_message(out, ip, NFT_MSG_NEWRULE, NLM_F_CREATE | NLM_F_APPEND | flags);
	size_t list;

	put_text(out, NFTA_RULE_TABLE, table_name);
	put_text(out, NFTA_RULE_CHAIN, rules[i].chain);
	list = open_nest(out, NFTA_RULE_EXPRESSIONS);
	rules[i].write(out, ip);
	close_nest(out, list);
	close_message(out, at);
}

/*
 * Only the last message asks for an acknowledgement; the kernel answers the others only if they
 * fail.
 */
static void write_ruleset(struct buf *out, size_t version_count)
{
	put_batch_mark(out, NFNL_MSG_BATCH_BEGIN);
	for (size_t v = 0; v < version_count; v++) {
		const struct version *ip = versions[v];

		put_table(out, ip);
		put_chain(out, ip, "in", NF_INET_PRE_ROUTING, -150 /* "mangle" */, NF_ACCEPT);
		put_chain(out, ip, "out", NF_INET_LOCAL_OUT, 0, NF_DROP);
		for (size_t i = 0; i < array_len(rules); i++) {
			bool is_last = v + 1 == version_count && i + 1 == array_len(rules);

			if (!rules[i].is_of_v4 || ip == &v4)
				put_rule(out, ip, i, is_last ? NLM_F_ACK : 0);
		}
	}
	put_batch_mark(out, NFNL_MSG_BATCH_END);
}

static void write_address(struct buf *out, const struct version *ip)
{
	struct ifaddrmsg head = {.ifa_family = ip->family,
		.ifa_prefixlen = (uint8_t)(ip->len * 8),
		/* no other host can have it; without the flag it cannot be used yet */
		.ifa_flags = IFA_F_NODAD,
		.ifa_index = LOOPBACK_LINK};
	size_t at = open_message(out, RTM_NEWADDR, NLM_F_CREATE | NLM_F_ACK, &head, sizeof(head));

	put(out, IFA_LOCAL, ip->own, ip->len);
	put(out, IFA_ADDRESS, ip->own, ip->len);
	close_message(out, at);
}

/*
 * A program that pings over IPv6 does not learn that the packet was dropped on its way out. So this
 * rule refuses the route before there is a packet.
 */
static void write_ping_rule(struct buf *out)
{
	struct fib_rule_hdr head = {.family = AF_INET6, .action = FR_ACT_UNREACHABLE};
	uint32_t priority = PING_PRIORITY;
	uint8_t protocol = IPPROTO_ICMPV6;
	size_t at = open_message(out, RTM_NEWRULE, NLM_F_CREATE | NLM_F_ACK, &head, sizeof(head));

	put(out, FRA_PRIORITY, &priority, sizeof(priority));
	put(out, FRA_IP_PROTO, &protocol, sizeof(protocol));
	close_message(out, at);
}

static void write_route(struct buf *out, const struct version *ip)
{
	struct rtmsg head = {.rtm_family = ip->family,
		.rtm_table = RT_TABLE_MAIN,
		.rtm_protocol = RTPROT_STATIC,
		.rtm_scope = RT_SCOPE_HOST,
		.rtm_type = RTN_LOCAL};
	uint32_t link = LOOPBACK_LINK;
	size_t at = open_message(out, RTM_NEWROUTE, NLM_F_CREATE | NLM_F_ACK, &head, sizeof(head));

	put(out, RTA_OIF, &link, sizeof(link));
	put(out, RTA_PREFSRC, ip->own, ip->len);
	close_message(out, at);
}

/* --- talking to the kernel --- */

/* Counts the answers in data, or returns the error in one of them. */
static int count_answers(const char *data, size_t len)
{
	int count = 0;

	for (const struct nlmsghdr *message = (const void *)data; NLMSG_OK(message, len);
		message = NLMSG_NEXT(message, len)) {
		const struct nlmsgerr *answer = NLMSG_DATA(message);

		if (message->nlmsg_type != NLMSG_ERROR ||
			message->nlmsg_len < NLMSG_LENGTH(sizeof(*answer)))
			return -EPROTO;
		if (answer->error < 0)
			return answer->error;
		count++;
	}
	return count;
}

/* The kernel works while we send, so that all its answers are there when that returns. */
static int talk(int protocol, const struct buf *messages, int expected)
{
	auto_fd int sock = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, protocol);
	_Alignas(struct nlmsghdr) char answers[8192];
	struct sockaddr_nl kernel = {.nl_family = AF_NETLINK};

	if (messages->failed)
		return -EMSGSIZE;
	if (sock < 0 || sendto(sock, messages->data, messages->len, 0,
				(const struct sockaddr *)&kernel, sizeof(kernel)) < 0)
		return -errno;
	while (expected > 0) {
		ssize_t n = recv(sock, answers, sizeof(answers), MSG_DONTWAIT);
		int r = n < 0 ? -errno : count_answers(answers, (size_t)n);

		if (r <= 0)
			return r < 0 ? r : -EPROTO;
		expected -= r;
	}
	return 0;
}

static int set_rules(size_t version_count)
{
	struct buf batch = BUF_INIT(MESSAGES_MAX);
	int r;

	write_ruleset(&batch, version_count);
	r = talk(NETLINK_NETFILTER, &batch, 1);
	buf_fini(&batch);
	return r;
}

static int set_route(const struct version *ip)
{
	struct buf links = BUF_INIT(MESSAGES_MAX);
	bool has_ping_rule = ip == &v6;
	int r;

	if (has_ping_rule)
		write_ping_rule(&links);
	write_address(&links, ip);
	write_route(&links, ip);
	r = talk(NETLINK_ROUTE, &links, has_ping_rule ? 3 : 2);
	buf_fini(&links);
	return r;
}

/*
 * The rules come first: before there is a route no packet could pass them. Where IPv6 has no rules
 * it gets no route, and programs learn at once that there is none.
 */
int transparent_proxy_make(bool *ret_has_v6, struct err *err)
{
	bool has_v6 = set_rules(array_len(versions)) == 0;
	int r = has_v6 ? 0 : set_rules(1);

	if (r < 0)
		return err_from(err, r, "set the rules of nf_tables");
	r = set_route(&v4);
	if (r < 0)
		return err_from(err, r, "set the route");
	*ret_has_v6 = has_v6 && set_route(&v6) == 0;
	return 0;
}
