package api_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"
	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"

	"pncd/api"
	"pncd/api/apitest"
	pncv1 "pncd/api/pnc/v1"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const patience = 20 * time.Second

// clients are the services' clients on one connection.
type clients struct {
	conn  *grpc.ClientConn
	caps  pncv1.CapabilityServiceClient
	flows pncv1.FlowServiceClient
	recs  pncv1.RecordServiceClient
	node  pncv1.NodeServiceClient
}

func dial(t *testing.T, target string, opts ...grpc.DialOption) *clients {
	t.Helper()
	if len(opts) == 0 {
		opts = append(opts, grpc.WithTransportCredentials(insecure.NewCredentials()))
	}
	conn, err := grpc.NewClient(target, opts...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	return &clients{
		conn: conn, caps: pncv1.NewCapabilityServiceClient(conn), flows: pncv1.NewFlowServiceClient(conn),
		recs: pncv1.NewRecordServiceClient(conn), node: pncv1.NewNodeServiceClient(conn),
	}
}

// sample serves the sample backends and gives clients.
func sample(t *testing.T, o api.Options) (*apitest.Backends, *api.Server, *clients) {
	t.Helper()
	b := apitest.New(t)
	socket, srv := b.Serve(t, o)
	return b, srv, dial(t, "unix:"+socket)
}

func deadline(t *testing.T) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	t.Cleanup(cancel)
	return ctx
}

// wantCode checks the code of an error and, for INVALID_ARGUMENT, the field in its details; for others the
// reason.
func wantCode(t *testing.T, err error, code codes.Code, fieldOrReason string) {
	t.Helper()
	st := status.Convert(err)
	if st.Code() != code {
		t.Errorf("code = %v (%v), want %v", st.Code(), err, code)
		return
	}
	if fieldOrReason == "" {
		return
	}
	for _, d := range st.Details() {
		switch d := d.(type) {
		case *errdetails.BadRequest:
			v := d.GetFieldViolations()[0]
			if v.GetField() == fieldOrReason && v.GetDescription() != "" && strings.HasPrefix(st.Message(), fieldOrReason+": ") {
				return
			}
		case *errdetails.ErrorInfo:
			if d.GetReason() == fieldOrReason && d.GetDomain() == api.ErrorDomain {
				return
			}
		}
	}
	t.Errorf("details of %v are %v, want %q in them", err, st.Details(), fieldOrReason)
}
