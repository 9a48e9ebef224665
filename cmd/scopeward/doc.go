// Command scopeward stands in front of a module router and gives it scopes/v1.
//
// Exit codes: 0 done, 1 failed, 2 wrong usage, 3 the answer is no (status of a
// sidecar that is not ready, explain of an open that would be refused), 69 no
// sidecar answers, 75 waited in vain, 78 the configuration has to be corrected,
// 126 and 127 as a shell's for a program that exec can't run or find.
package main
