//! A provider that knows nothing of scopes: every control body it is sent must decode as
//! subc-protocol 0.26 has it. It accepts each bind, echoes each request, and writes what it saw
//! as JSON lines to the file named by `OLDMODULE_EVENTS`. It exits when its connection ends.

use std::{error::Error, fs, io::Write as _, path::PathBuf, time::Duration};

use serde_json::{json, Value};
use subc_protocol::{
    manifest::{Concurrency, IdentityScope, ModuleManifest, ProviderRole},
    session::{HealthReport, ModuleControlRequest, ModuleControlResponse},
    ErrorBody, Flags, Frame, FrameType, ModuleHelloBody, Priority, PROTOCOL_VERSION,
};
use subc_transport::{authenticate_client, discover, read_frame, write_frame};
use tokio::net::{tcp::OwnedWriteHalf, TcpStream};

type Failure = Box<dyn Error + Send + Sync>;

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Failure> {
    let nonce = subc_os::launch_nonce()?.map(|nonce| nonce.value().to_string());
    let module_id = std::env::var("SUBC_MODULE_ID")?;
    let file = std::env::args_os().skip_while(|arg| arg != "--subc").nth(1);
    let found = discover(file.map(PathBuf::from).as_deref())?;
    let endpoint = found.info.endpoints.first().ok_or("no endpoint")?;

    let mut stream = TcpStream::connect((endpoint.host.as_str(), endpoint.port)).await?;
    authenticate_client(&mut stream, &found.info, Duration::from_secs(2)).await?;
    let (mut reader, mut writer) = stream.into_split();
    let hello = ModuleHelloBody {
        manifest: manifest(&module_id),
        protocol_ver: PROTOCOL_VERSION,
        control_ops: None,
        launch_nonce: nonce,
    };
    send(
        &mut writer,
        FrameType::Hello,
        0,
        0,
        1,
        serde_json::to_vec(&hello)?,
    )
    .await?;

    while let Some(frame) = read_frame(&mut reader).await? {
        let head = frame.header;
        match (head.ty, head.channel) {
            (FrameType::HelloAck, 0) => record(json!({"kind": "hello_ack", "body": raw(&frame)})),
            (FrameType::Request, 0) => {
                let (ty, body) = control(&frame)?;
                send(&mut writer, ty, 0, 0, head.corr, body).await?;
            }
            (FrameType::Request, _) => {
                send(
                    &mut writer,
                    FrameType::Response,
                    head.channel,
                    head.epoch,
                    head.corr,
                    frame.body,
                )
                .await?;
            }
            (FrameType::Goodbye, channel) => {
                record(json!({"kind": "goodbye", "channel": channel, "epoch": head.epoch}))
            }
            (FrameType::Error, 0) => record(json!({"kind": "error", "body": raw(&frame)})),
            _ => {}
        }
    }
    Ok(())
}

/// A control request, decoded by the old types; a body that does not decode is refused and recorded.
fn control(frame: &Frame) -> Result<(FrameType, Vec<u8>), Failure> {
    let response = match serde_json::from_slice::<ModuleControlRequest>(&frame.body) {
        Ok(ModuleControlRequest::RouteBind { .. }) => {
            record(json!({"kind": "bind", "body": raw(frame)}));
            ModuleControlResponse::RouteBindAck {}
        }
        Ok(ModuleControlRequest::HealthCheck {}) => HealthReport::ok().into(),
        Err(error) => {
            record(json!({"kind": "undecodable", "error": error.to_string(), "body": raw(frame)}));
            let body = ErrorBody::new("invalid_control_body", error.to_string());
            return Ok((FrameType::Error, serde_json::to_vec(&body)?));
        }
    };
    Ok((FrameType::Response, serde_json::to_vec(&response)?))
}

fn raw(frame: &Frame) -> Value {
    serde_json::from_slice(&frame.body).unwrap_or(Value::Null)
}

async fn send(
    writer: &mut OwnedWriteHalf,
    ty: FrameType,
    channel: u16,
    epoch: u32,
    corr: u64,
    body: Vec<u8>,
) -> Result<(), Failure> {
    let flags = Flags::new(false, Priority::Passive, false);
    write_frame(
        writer,
        &Frame::build(ty, flags, channel, epoch, corr, body)?,
    )
    .await?;
    Ok(())
}

fn record(event: Value) {
    let Some(path) = std::env::var_os("OLDMODULE_EVENTS") else {
        return;
    };
    let _ = fs::OpenOptions::new()
        .create(true)
        .append(true)
        .open(path)
        .and_then(|mut file| file.write_all(format!("{event}\n").as_bytes()));
}

fn manifest(module_id: &str) -> ModuleManifest {
    ModuleManifest::builder(module_id, env!("CARGO_PKG_VERSION"))
        .provides(vec![ProviderRole::ToolProvider {
            tools: Vec::new(),
            identity_scope: vec![IdentityScope::Project],
            concurrency: Concurrency::ModuleManaged,
            emits_push: false,
            sub_supervises: false,
        }])
        .build()
}
