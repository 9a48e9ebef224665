// Package systemd is the service manager that started us, as far as it shows
// itself in the environment: who is told how we are, what it handed over, and
// what it keeps for the process that comes after us. It speaks sd_notify(3),
// sd_listen_fds(3) and sd_pid_notify_with_fds(3), and nothing else of systemd's.
//
// [Open] takes the environment once, before any child exists: a variable that
// were left there would make a child speak in our name. Without a manager every
// method of a [Manager] does nothing and succeeds.
//
// Two kinds of descriptors come in: the listening socket, for which a
// connection waits while none of us runs, and what an earlier process stored.
// They are told apart by what they are, not by their order.
package systemd
