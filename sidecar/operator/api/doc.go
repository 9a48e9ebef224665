// Package api is the operator's API as both of its sides know it: its
// description, its types, and the client that the command line is.
//
// The description is openapi.json. The types in schema.go are made from it by
// gen; a test fails when they are not what the description makes today. The
// server is package operator.
//
//	openapi.json  paths, parameters, schemas: what other languages read
//	schema.go     the schemas as Go types, generated
//	client.go     one method a path, over the Unix socket
//	stream.go     the event stream
package api

import _ "embed"

//go:generate go run ./gen openapi.json schema.go

// Description is the API's OpenAPI document, JSON.
//
//go:embed openapi.json
var Description []byte
