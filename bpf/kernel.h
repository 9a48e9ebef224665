/* The few pieces of the kernel's stable BPF interface that attribute.c uses,
 * declared here so that it compiles with clang alone: no libbpf, no kernel
 * headers, no vmlinux.h. Layouts and numbers are ABI and never change; a struct
 * ends after the last member that we read. */
#ifndef SCOPEWARD_KERNEL_H
#define SCOPEWARD_KERNEL_H

typedef unsigned char u8;
typedef unsigned short u16;
typedef unsigned int u32;
typedef unsigned long long u64;

#define SEC(name) __attribute__((section(name), used))
#define inline_always inline __attribute__((always_inline))

/* Map definitions are read from the object's own type information. */
#define map_uint(name, val) int (*name)[val]
#define map_type(name, val) typeof(val) *name

enum { MAP_HASH = 1, MAP_ARRAY = 2, MAP_RINGBUF = 27 };
enum { UPDATE_ANY = 0 };

enum { FAMILY_INET = 2, FAMILY_INET6 = 10 };
enum { TYPE_STREAM = 1 };
enum { STATE_CLOSE = 7 };

enum {
	OP_CONNECT = 3,             /* in connect(2), ports chosen, before the first SYN */
	OP_PASSIVE_ESTABLISHED = 5, /* the accepted socket exists and is established */
	OP_STATE = 10,              /* args[0] old state, args[1] new state */
};
enum { CB_FLAG_STATE = 1 << 2 };

/* Context of cgroup/connect4 and cgroup/connect6. */
struct sock_addr {
	u32 user_family;
	u32 user_ip4;
	u32 user_ip6[4];
	u32 user_port; /* network order, in the low 16 bits */
	u32 family;
	u32 type;
	u32 protocol;
};

/* Context of sockops. */
struct sock_ops {
	u32 op;
	u32 args[4];
	u32 family;
	u32 remote_ip4;    /* network order */
	u32 local_ip4;     /* network order */
	u32 remote_ip6[4]; /* network order */
	u32 local_ip6[4];  /* network order */
	u32 remote_port;   /* network order of 32 bits */
	u32 local_port;    /* host order */
	u32 is_fullsock;
	u32 snd_cwnd;
	u32 srtt_us;
	u32 cb_flags;
};

/* One member of a context, loaded at a constant offset from the pointer that came
 * in. The verifier takes nothing else, and the compiler would rather compute an
 * address that several loads share. */
#define ctx_u32(ctx, member)                                            \
	({                                                              \
		u64 _v;                                                 \
		asm volatile("%0 = *(u32 *)(%1 + %2)"                   \
			     : "=r"(_v)                                 \
			     : "r"(ctx),                                \
			       "i"(__builtin_offsetof(typeof(*(ctx)), member))); \
		(u32)_v;                                                \
	})

/* Context of cgroup/sock_release: only passed on. */
struct sock;

static void *(*const map_lookup)(void *map, const void *key) = (void *)1;
static long (*const map_update)(void *map, const void *key, const void *value, u64 flags) = (void *)2;
static long (*const map_delete)(void *map, const void *key) = (void *)3;
static u64 (*const current_pid_tgid)(void) = (void *)14;
static u64 (*const current_uid_gid)(void) = (void *)15;
static u64 (*const socket_cookie)(void *ctx) = (void *)46;
static long (*const cb_flags_set)(struct sock_ops *ctx, int flags) = (void *)59;
static u64 (*const netns_cookie)(void *ctx) = (void *)122;
static u64 (*const boot_ns)(void) = (void *)125;
static long (*const ringbuf_output)(void *ring, void *data, u64 size, u64 flags) = (void *)130;

/* bpf2go's targets for amd64 and arm64 are little endian. */
static inline_always u16 swap16(u16 v) { return __builtin_bswap16(v); }
static inline_always u32 swap32(u32 v) { return __builtin_bswap32(v); }

#endif
