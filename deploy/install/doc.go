// Package install puts scopeward on a host, or into a root of another, and takes
// it away again.
//
// A [Plan] is made by looking and changes nothing; [Plan.Apply] does what it
// says. What is created is recorded, with its digest, in /etc/scopeward: removal
// goes by that record alone, so a file that was there before, or that somebody
// has changed since, is not ours to remove. Running either twice changes nothing
// more.
//
// Of the router's own files none is touched, but for one with consent: modules
// that are named have their command in the router's configuration wrapped by
// `scopeward exec`. That is an edit of the text, not a rendering: comments and
// formatting stay, a backup lies beside it, and removal restores it byte for
// byte.
//
// Nothing here runs systemctl: [Plan.Next] says what remains to be done by hand.
package install
