package main

import "testing"

func TestClassify(t *testing.T) {
	for text, want := range map[string]string{
		"Apache License\n   Version 2.0, January 2004": "Apache-2.0",
		"Permission is hereby granted, free\nof charge, to any person. The above copyright notice and this permission notice shall be included in all": "MIT",
		"Redistribution and use in source and binary forms ... Neither the name of Google":                                                             "BSD-3-Clause",
		"Redistribution and use in source and binary forms ... Redistributions in binary form must reproduce the above":                                "BSD-2-Clause",
		"GNU GENERAL PUBLIC LICENSE Version 3":                                 "",
		"Mozilla Public License Version 2.0 ... GNU General Public License":    "MPL-2.0",
		"GNU LESSER GENERAL PUBLIC LICENSE, as the GNU General Public License": "",
		"Business Source License 1.1":                                          "",
		"":                                                                     "",
	} {
		if got := classify([]byte(text)); got != want {
			t.Errorf("%.40q is %q, want %q", text, got, want)
		}
	}
}
