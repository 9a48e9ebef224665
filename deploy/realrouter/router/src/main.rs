//! The router under test: the published daemon's own bootstrap, with its log on stderr.

use std::process::ExitCode;

use tracing_subscriber::EnvFilter;

#[tokio::main]
async fn main() -> ExitCode {
    tracing_subscriber::fmt()
        .with_env_filter(EnvFilter::from_default_env())
        .with_writer(std::io::stderr)
        .init();
    match subc_daemon::bootstrap::run().await {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("router: {error}");
            ExitCode::FAILURE
        }
    }
}
