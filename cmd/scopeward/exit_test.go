package main

import (
	"fmt"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// The README's table of exit codes is the code's.
func TestREADMEListsTheExitCodes(t *testing.T) {
	text, err := os.ReadFile("../../README.md")
	require.NoError(t, err)
	_, section, found := strings.Cut(string(text), "\n### Exit codes\n")
	require.True(t, found)
	section, _, _ = strings.Cut(section, "\n## ")
	var listed []string
	for _, row := range regexp.MustCompile(`(?m)^\| (\d+) \|`).FindAllStringSubmatch(section, -1) {
		listed = append(listed, row[1])
	}
	source, err := os.ReadFile("exit.go")
	require.NoError(t, err)
	var declared []string
	for _, row := range regexp.MustCompile(`(?m)^\texit\w+ += (\d+)`).FindAllStringSubmatch(string(source), -1) {
		declared = append(declared, row[1])
	}
	require.Equal(t, declared, listed, fmt.Sprint(listed))
}
