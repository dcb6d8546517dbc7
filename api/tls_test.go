package api_test

import (
	"crypto/tls"
	"crypto/x509"
	"os"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"

	"pncd/api"
	"pncd/api/apitest"
	pncv1 "pncd/api/pnc/v1"
)

func trusting(cert *x509.Certificate, own ...tls.Certificate) grpc.DialOption {
	pool := x509.NewCertPool()
	pool.AddCert(cert)
	return grpc.WithTransportCredentials(credentials.NewTLS(&tls.Config{RootCAs: pool, Certificates: own, MinVersion: tls.VersionTLS12}))
}

func TestTCPIsServedOverTLSAndRenewedWithoutRestart(t *testing.T) {
	dir := t.TempDir()
	certFile, keyFile, first := apitest.Certificate(t, dir, "127.0.0.1")
	l, err := api.ListenConfig{Address: "127.0.0.1:0", TLS: &api.TLSConfig{CertFile: certFile, KeyFile: keyFile}}.Listen(deadline(t))
	if err != nil {
		t.Fatal(err)
	}
	apitest.Serve(t, apitest.New(t).API(), api.Options{}, l)
	status := func(opt grpc.DialOption) error {
		_, err := dial(t, "passthrough:///"+l.Addr().String(), opt).node.GetStatus(deadline(t), &pncv1.GetStatusRequest{})
		return err
	}
	if err := status(trusting(first)); err != nil {
		t.Fatalf("with the first certificate: %v", err)
	}
	_, _, second := apitest.Certificate(t, dir, "127.0.0.1")
	if err := status(trusting(second)); err != nil {
		t.Errorf("with the renewed certificate: %v", err)
	}
	wantCode(t, status(trusting(first)), codes.Unavailable, "")

	// A file that is being written must not take the API down.
	if err := os.WriteFile(certFile, []byte("half"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := status(trusting(second)); err != nil {
		t.Errorf("with an unreadable file, by the last good certificate: %v", err)
	}
}

func TestMutualTLSRefusesClientsWithoutACertificate(t *testing.T) {
	serverCert, serverKey, server := apitest.Certificate(t, t.TempDir(), "127.0.0.1")
	clientCert, clientKey, _ := apitest.Certificate(t, t.TempDir(), "127.0.0.2")
	strangerCert, strangerKey, _ := apitest.Certificate(t, t.TempDir(), "127.0.0.3")
	l, err := api.ListenConfig{
		Address: "127.0.0.1:0",
		TLS:     &api.TLSConfig{CertFile: serverCert, KeyFile: serverKey, ClientCAFile: clientCert},
	}.Listen(deadline(t))
	if err != nil {
		t.Fatal(err)
	}
	apitest.Serve(t, apitest.New(t).API(), api.Options{}, l)
	pair := func(cert, key string) tls.Certificate {
		c, err := tls.LoadX509KeyPair(cert, key)
		if err != nil {
			t.Fatal(err)
		}
		return c
	}
	for _, tt := range []struct {
		name string
		opt  grpc.DialOption
		code codes.Code
	}{
		{"known", trusting(server, pair(clientCert, clientKey)), codes.OK},
		{"none", trusting(server), codes.Unavailable},
		{"stranger", trusting(server, pair(strangerCert, strangerKey)), codes.Unavailable},
	} {
		t.Run(tt.name, func(t *testing.T) {
			_, err := dial(t, "passthrough:///"+l.Addr().String(), tt.opt).node.GetStatus(deadline(t), &pncv1.GetStatusRequest{})
			wantCode(t, err, tt.code, "")
		})
	}
}
