//! A module on the Rust SDK that carries sessions: asked over a route of its own, it opens an
//! onward route under a scope with the identity its launch gave it, and calls on it.
//!
//! A request is a JSON object tagged by `kind`:
//!
//! - `open {route, target, scope?, timeout_ms?}`: opens a route and keeps it under the name `route`
//! - `call {route, body}`: one call on a kept route
//! - `ended`: the `route.closed` pushes seen so far, oldest first
//!
//! The answer is `{ok: ..}`, `{refused: {code, message}}` or `{failed: text}`. With
//! `CARRIER_CAPABILITIES` set to a comma-separated list it declares those capabilities. With
//! `CARRIER_EVENTS` set it appends each bind it is sent to that file, as JSON lines.

use std::{collections::HashMap, error::Error, fs, io::Write as _, path::PathBuf, time::Duration};

use serde_json::{json, Value};
use subc_client_rs::{
    async_trait, BindDecision, CallError, CallOptions, ConsumerOptions, HandlerOutcome,
    ModuleHandler, RequestCtx, RouteBindRequest, RouteHandle, SubcConsumer,
};
use subc_protocol::{
    manifest::{CapabilityDeclarations, Concurrency, IdentityScope, ModuleManifest, ProviderRole},
    BindIdentity, RouteTarget,
};
use tokio::sync::Mutex;

type Failure = Box<dyn Error + Send + Sync>;

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Failure> {
    let _ = subc_client_rs::launch_nonce();
    let module_id = std::env::var(subc_protocol::SUBC_MODULE_ID_ENV)?;
    let file = std::env::args_os()
        .skip_while(|arg| arg != "--subc")
        .nth(1)
        .map(PathBuf::from)
        .ok_or("missing --subc FILE")?;
    let carrier = Carrier {
        file,
        onward: Mutex::new(None),
    };
    subc_client_rs::serve(manifest(&module_id), carrier).await?;
    Ok(())
}

struct Carrier {
    file: PathBuf,
    onward: Mutex<Option<Onward>>,
}

/// The onward connection, made at the first request.
struct Onward {
    consumer: SubcConsumer,
    pushes: tokio::sync::mpsc::Receiver<subc_client_rs::ControlPush>,
    closed: Vec<Value>,
    routes: HashMap<String, RouteHandle>,
}

#[async_trait]
impl ModuleHandler for Carrier {
    async fn handle(&self, _ctx: RequestCtx, body: Vec<u8>) -> HandlerOutcome {
        let answer = match self.act(&body).await {
            Ok(value) => json!({ "ok": value }),
            Err(error) => explain(&*error),
        };
        HandlerOutcome::Response(answer.to_string().into_bytes())
    }

    async fn on_bind(&self, request: &RouteBindRequest) -> BindDecision {
        record(json!({
            "kind": "bind",
            "principal": &request.principal,
            "scope": request.scope.as_ref().map(|scope| json!(scope)),
            "call_mode": format!("{:?}", request.call_mode),
        }));
        BindDecision::accept()
    }
}

impl Carrier {
    async fn act(&self, body: &[u8]) -> Result<Value, Failure> {
        let request: Value = serde_json::from_slice(body)?;
        let mut held = self.onward.lock().await;
        if held.is_none() {
            let consumer = SubcConsumer::connect(&self.file, ConsumerOptions::default()).await?;
            let pushes = consumer.control_pushes(256);
            *held = Some(Onward {
                consumer,
                pushes,
                closed: Vec::new(),
                routes: HashMap::new(),
            });
        }
        let onward = held.as_mut().ok_or("no onward connection")?;
        match request["kind"].as_str() {
            Some("open") => onward.open(&request).await,
            Some("call") => onward.call(&request).await,
            Some("ended") => Ok(onward.ended()),
            other => Err(format!("unknown kind {other:?}").into()),
        }
    }
}

impl Onward {
    async fn open(&mut self, request: &Value) -> Result<Value, Failure> {
        let target = RouteTarget::ToolProvider {
            module_id: text(request, "target")?,
        };
        let identity: BindIdentity = serde_json::from_value(request["identity"].clone())?;
        let options = CallOptions {
            timeout: Duration::from_millis(request["timeout_ms"].as_u64().unwrap_or(5000)),
            ..CallOptions::default()
        };
        let handle = match &request["scope"] {
            Value::Null => self.consumer.open_route(target, identity, options).await?,
            scope => {
                let scope = serde_json::from_value(scope.clone())?;
                self.consumer
                    .open_route_scoped(target, identity, scope, options)
                    .await?
            }
        };
        self.routes.insert(text(request, "route")?, handle);
        Ok(json!({"channel": handle.channel, "epoch": handle.epoch}))
    }

    async fn call(&mut self, request: &Value) -> Result<Value, Failure> {
        let handle = *self
            .routes
            .get(&text(request, "route")?)
            .ok_or("no such route")?;
        let body = request["body"].to_string().into_bytes();
        let reply = self
            .consumer
            .request(&handle, body, CallOptions::default())
            .await?;
        Ok(serde_json::from_slice(&reply).unwrap_or(Value::Null))
    }

    fn ended(&mut self) -> Value {
        while let Ok(push) = self.pushes.try_recv() {
            if push.op == "route.closed" {
                self.closed.push(push.body);
            }
        }
        json!(self.closed)
    }
}

fn explain(error: &(dyn Error + Send + Sync + 'static)) -> Value {
    match error.downcast_ref::<CallError>() {
        Some(call) => match call.route_open_refusal() {
            Some(body) => json!({"refused": {"code": body.code, "message": body.message}}),
            None => {
                json!({"failed": call.to_string(), "reason": format!("{:?}", call.close_reason())})
            }
        },
        None => json!({"failed": error.to_string()}),
    }
}

fn text(request: &Value, member: &str) -> Result<String, Failure> {
    Ok(request[member]
        .as_str()
        .ok_or_else(|| format!("{member} is no string"))?
        .to_string())
}

fn record(event: Value) {
    let Some(path) = std::env::var_os("CARRIER_EVENTS") else {
        return;
    };
    let _ = fs::OpenOptions::new()
        .create(true)
        .append(true)
        .open(path)
        .and_then(|mut file| file.write_all(format!("{event}\n").as_bytes()));
}

fn manifest(module_id: &str) -> ModuleManifest {
    let declared = std::env::var("CARRIER_CAPABILITIES").unwrap_or_default();
    let provides: Vec<String> = declared
        .split(',')
        .filter(|name| !name.is_empty())
        .map(str::to_owned)
        .collect();
    let capabilities = (!provides.is_empty()).then(|| CapabilityDeclarations {
        provides,
        requires: Vec::new(),
        must_never_reach: Vec::new(),
    });
    ModuleManifest::builder(module_id, env!("CARGO_PKG_VERSION"))
        .capabilities(capabilities)
        .provides(vec![ProviderRole::ToolProvider {
            tools: Vec::new(),
            identity_scope: vec![IdentityScope::Project],
            concurrency: Concurrency::ModuleManaged,
            emits_push: false,
            sub_supervises: false,
        }])
        .build()
}
