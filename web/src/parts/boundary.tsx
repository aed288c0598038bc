import { Component, type ComponentChildren } from 'preact';

/** A view that breaks says so; the rest of the page goes on. */
export class Boundary extends Component<{ children: ComponentChildren }, { problem?: string }> {
  override state: { problem?: string } = {};

  static override getDerivedStateFromError(error: unknown) {
    return { problem: error instanceof Error ? error.message : String(error) };
  }

  render() {
    if (!this.state.problem) return this.props.children;
    return (
      <div class="state failed" role="alert" data-state="error">
        <h1 tabIndex={-1}>This page broke</h1>
        <p class="said">{this.state.problem}</p>
        <p>That is a fault of the dashboard: please report it with this sentence and the page’s address.</p>
        <button type="button" class="button" onClick={() => this.setState({ problem: undefined })}>Try again</button>
      </div>
    );
  }
}
