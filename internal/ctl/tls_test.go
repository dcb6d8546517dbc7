package ctl

import (
	"context"
	"path/filepath"
	"strings"
	"testing"

	"pncd/api"
	"pncd/api/apitest"
)

func TestTCPNeedsTheRightCertificates(t *testing.T) {
	serverDir, clientDir := t.TempDir(), t.TempDir()
	serverCert, serverKey, _ := apitest.Certificate(t, serverDir, "127.0.0.1")
	clientCert, clientKey, _ := apitest.Certificate(t, clientDir, "127.0.0.2")
	l, err := api.ListenConfig{
		Address: "127.0.0.1:0",
		TLS:     &api.TLSConfig{CertFile: serverCert, KeyFile: serverKey, ClientCAFile: clientCert},
	}.Listen(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	b := apitest.New(t)
	apitest.Serve(t, b.API(), api.Options{}, l)
	env := map[string]string{envAddress: l.Addr().String()}
	own := " --tls-cert " + clientCert + " --tls-key " + clientKey
	for _, tt := range []struct {
		name, args string
		status     int
		errs       string
	}{
		{"both", "status --tls-ca " + serverCert + own, 0, ""},
		{"unknown CA", "status" + own, 1, "--tls-ca"},
		{"wrong name", "status --tls-server-name pe9 --tls-ca " + serverCert + own, 1, "--tls-server-name"},
		{"no client certificate", "status --tls-ca " + serverCert, 1, "--tls-cert"},
		{"unreadable key", "status --tls-ca " + serverCert + " --tls-cert " + clientCert + " --tls-key " + filepath.Join(clientDir, "none"), 2, "--tls-key"},
		{"no certificate in the CA file", "status --tls-ca " + serverKey, 2, "no PEM certificate"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			status, out, errs := pncctl(t, env, strings.Fields(tt.args)...)
			if status != tt.status || !strings.Contains(errs, tt.errs) || (status == 0) != (out != "") {
				t.Errorf("exit status %d, %q, %q, want %d and %q", status, out, errs, tt.status, tt.errs)
			}
		})
	}
}
