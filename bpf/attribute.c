//go:build ignore

/* Which process connected. Attribution only: every program answers "go on" and
 * writes nothing but the maps below.
 *
 *   connect4, connect6   in the caller's context: who, keyed by the client
 *                        socket's cookie
 *   sockops CONNECT      same system call, ports now chosen, no SYN sent yet: who
 *                        moves to the tuple as the server will see it
 *   sockops PASSIVE      the accepted socket is born: who moves to its cookie
 *   sockops STATE        a socket closes: what it left behind goes
 *   sock_release         a socket goes that never got as far as a SYN
 *
 * The first two run under the client socket's lock, so no second connect on a
 * shared socket comes between them. The tuple is settled before the SYN leaves,
 * so it is there when the other side is established: with a deferred ACK, with
 * SYN cookies, and with TCP fast open, where the passive side is first.
 *
 * Nothing here reads kernel memory or needs kernel type information. */

#include "kernel.h"

char __license[] SEC("license") = "Dual MIT/GPL";

/* What a port is to us. Userspace fills the map; everything else is let by. */
enum { ROLE_OWN = 1, ROLE_ROUTER = 2 };

/* Who called connect, and when. */
struct origin {
	u32 tgid;   /* in the initial PID namespace; 0: not known */
	u32 uid;    /* real uid in the initial user namespace */
	u64 at;     /* CLOCK_BOOTTIME, ns */
	u64 client; /* cookie of the client's socket */
};

/* A connection as its server sees it. IPv4 is written as ::ffff:a.b.c.d, so
 * that a mapped client and an IPv4 server mean the same one. */
struct tuple {
	u64 netns; /* cookie of the network namespace: ports repeat across them */
	u32 remote[4];
	u32 local[4];
	u16 remote_port;
	u16 local_port;
	u32 zero;
};

/* Places in the counters. */
enum { LOST_CONNECTS, LOST_TUPLES, LOST_ACCEPTED, LOST_BYPASS, COUNTERS };

struct {
	map_uint(type, MAP_HASH);
	map_uint(max_entries, 64);
	map_type(key, u16);
	map_type(value, u8);
} ports SEC(".maps");

struct {
	map_uint(type, MAP_HASH);
	map_uint(max_entries, 16384);
	map_type(key, u64);
	map_type(value, struct origin);
} connects SEC(".maps");

struct {
	map_uint(type, MAP_HASH);
	map_uint(max_entries, 16384);
	map_type(key, struct tuple);
	map_type(value, struct origin);
} tuples SEC(".maps");

struct {
	map_uint(type, MAP_HASH);
	map_uint(max_entries, 16384);
	map_type(key, u64);
	map_type(value, struct origin);
} accepted SEC(".maps");

struct {
	map_uint(type, MAP_RINGBUF);
	map_uint(max_entries, 1 << 18);
} bypass SEC(".maps");

struct {
	map_uint(type, MAP_ARRAY);
	map_uint(max_entries, COUNTERS);
	map_type(key, u32);
	map_type(value, u64);
} counters SEC(".maps");

static inline_always void count(u32 which)
{
	u64 *n = map_lookup(&counters, &which);

	if (n)
		__sync_fetch_and_add(n, 1);
}

static inline_always u8 role_of(u16 port)
{
	u8 *role = map_lookup(&ports, &port);

	return role ? *role : 0;
}

static inline_always int note(struct sock_addr *ctx)
{
	struct origin who = {};

	if (ctx->type != TYPE_STREAM || !role_of(swap16(ctx->user_port)))
		return 1;
	who.client = socket_cookie(ctx);
	who.tgid = current_pid_tgid() >> 32;
	who.uid = current_uid_gid();
	who.at = boot_ns();
	if (map_update(&connects, &who.client, &who, UPDATE_ANY)) {
		/* An entry of an earlier connect of this socket may still be there. */
		map_delete(&connects, &who.client);
		count(LOST_CONNECTS);
	}
	return 1;
}

SEC("cgroup/connect4")
int note_connect4(struct sock_addr *ctx)
{
	return note(ctx);
}

SEC("cgroup/connect6")
int note_connect6(struct sock_addr *ctx)
{
	return note(ctx);
}

SEC("cgroup/sock_release")
int note_release(struct sock *ctx)
{
	u64 cookie = socket_cookie(ctx);

	map_delete(&connects, &cookie);
	return 1;
}

/* fill_tuple writes the server's view. from_client says that ctx is the client's
 * socket. */
static inline_always void fill_tuple(struct tuple *t, struct sock_ops *ctx, int from_client)
{
	u32 *near = from_client ? t->remote : t->local;
	u32 *far = from_client ? t->local : t->remote;
	u16 near_port = ctx_u32(ctx, local_port);
	u16 far_port = swap32(ctx_u32(ctx, remote_port));

	t->netns = netns_cookie(ctx);
	t->remote_port = from_client ? near_port : far_port;
	t->local_port = from_client ? far_port : near_port;
	if (ctx_u32(ctx, family) == FAMILY_INET) {
		near[2] = far[2] = swap32(0xffff);
		near[3] = ctx_u32(ctx, local_ip4);
		far[3] = ctx_u32(ctx, remote_ip4);
		return;
	}
	near[0] = ctx_u32(ctx, local_ip6[0]);
	near[1] = ctx_u32(ctx, local_ip6[1]);
	near[2] = ctx_u32(ctx, local_ip6[2]);
	near[3] = ctx_u32(ctx, local_ip6[3]);
	far[0] = ctx_u32(ctx, remote_ip6[0]);
	far[1] = ctx_u32(ctx, remote_ip6[1]);
	far[2] = ctx_u32(ctx, remote_ip6[2]);
	far[3] = ctx_u32(ctx, remote_ip6[3]);
}

static inline_always void watch_close(struct sock_ops *ctx)
{
	cb_flags_set(ctx, ctx->cb_flags | CB_FLAG_STATE);
}

/* on_connect replaces whatever the tuple said before, also when it has nothing
 * to say: a connect that was not noted must not inherit another's name. */
static inline_always void on_connect(struct sock_ops *ctx)
{
	struct tuple t = {};
	struct origin who, *noted;
	u64 cookie;

	if (!role_of(swap32(ctx->remote_port)))
		return;
	fill_tuple(&t, ctx, 1);
	map_delete(&tuples, &t);

	cookie = socket_cookie(ctx);
	noted = map_lookup(&connects, &cookie);
	if (!noted)
		return;
	who = *noted;
	map_delete(&connects, &cookie);
	watch_close(ctx);
	if (map_update(&tuples, &t, &who, UPDATE_ANY))
		count(LOST_TUPLES);
}

static inline_always void on_passive(struct sock_ops *ctx)
{
	struct tuple t = {};
	struct origin who = {}, *from;
	u64 cookie;
	u8 role = role_of(ctx->local_port);

	if (!role)
		return;
	fill_tuple(&t, ctx, 0);
	from = map_lookup(&tuples, &t);
	if (from) {
		who = *from;
		map_delete(&tuples, &t);
	}
	if (role == ROLE_ROUTER) {
		if (!who.at)
			who.at = boot_ns();
		if (ringbuf_output(&bypass, &who, sizeof(who), 0))
			count(LOST_BYPASS);
		return;
	}
	if (!from)
		return;
	watch_close(ctx);
	cookie = socket_cookie(ctx);
	if (map_update(&accepted, &cookie, &who, UPDATE_ANY))
		count(LOST_ACCEPTED);
}

/* on_close runs for both sides. A client's tuple is deleted only while it is
 * that client's: the port may serve the next socket already. */
static inline_always void on_close(struct sock_ops *ctx)
{
	struct tuple t = {};
	struct origin *from;
	u64 cookie = socket_cookie(ctx);

	map_delete(&accepted, &cookie);
	fill_tuple(&t, ctx, 1);
	from = map_lookup(&tuples, &t);
	if (from && from->client == cookie)
		map_delete(&tuples, &t);
}

SEC("sockops")
int carry(struct sock_ops *ctx)
{
	switch (ctx->op) {
	case OP_CONNECT:
		on_connect(ctx);
		break;
	case OP_PASSIVE_ESTABLISHED:
		on_passive(ctx);
		break;
	case OP_STATE:
		if (ctx->args[1] == STATE_CLOSE)
			on_close(ctx);
		break;
	}
	return 1;
}
