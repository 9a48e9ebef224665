// Package deploy is what an installation consists of beside the program: units,
// drop-ins and the sample configuration, as they are in this folder. It renders
// nothing and writes nothing.
package deploy
