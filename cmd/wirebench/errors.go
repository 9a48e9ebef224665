package main

import (
	"errors"
	"fmt"

	"scopeward/proxy/wire"

	"github.com/go-json-experiment/json"
)

var (
	// errIdle says that nothing arrived within patience.
	errIdle = errors.New("nothing arrived in 10 s")
	// errNoValue says that the kernel's status file lacks a line.
	errNoValue = errors.New("no such line in the status file")
	// errNoProxy says that a measurement of a proxy met a bare router.
	errNoProxy = errors.New("nothing stands in front of this router")
	// errFailed says that the figures are not complete. What is missing was
	// reported when it failed.
	errFailed = errors.New("some measurements failed")
)

// refused is an Error frame that answered the load.
type refused struct{ code, message string }

func (e *refused) Error() string { return fmt.Sprintf("refused %s: %s", e.code, e.message) }

func refusal(body []byte) error {
	var e wire.ErrorBody
	if err := json.Unmarshal(body, &e); err != nil {
		return fmt.Errorf("an Error frame's body does not parse")
	}
	return &refused{code: e.Code, message: e.Message}
}
